# The kernel of bash is an interactive bash without a terminal: it reads these lines, then what the server asks, and
# an interrupt brings it back to the next line. Each request brings a random mark (see python.py).
PS1= PS2= PS0= HISTFILE=; unset PROMPT_COMMAND; set +H +o history
exec 191>&1 192>&2
__atoll_count=0; declare -A __atoll_kept; __atoll_added=()
__atoll_say() { printf '\036%s%04x.%s' "$1" "${#2}" "$2" >&"$3"; }
__atoll_begin() { ((++__atoll_count)); __atoll_say "$1" "{\"t\":\"begin\",\"n\":$__atoll_count}" 191; __atoll_say "$1" '{"t":"begin"}' 192; }
__atoll_set() { if [[ -v $1 ]]; then __atoll_kept[$1]=${!1}; else __atoll_added+=("$1"); fi; export "$1=$2"; }
__atoll_end() { local name; for name in "${!__atoll_kept[@]}"; do export "$name=${__atoll_kept[$name]}"; done; for name in "${__atoll_added[@]}"; do unset "$name"; done; __atoll_kept=() __atoll_added=(); exec 1>&191 2>&192; __atoll_say "$1" "{\"t\":\"end\",\"code\":$2}" 191; __atoll_say "$1" '{"t":"end"}' 192; }
