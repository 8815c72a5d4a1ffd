# The Python kernel: runs cells of one namespace, says what they display.
#
# It comes through its own standard input, which is then where requests come from: one JSON object a line. Programs'
# output goes to the agent's pipes directly. What the kernel itself says goes there too, as pieces that no other
# writer can break up (a write of at most 4096 bytes is whole) and that nobody else can make (each request brings a
# random mark). `rest` are bytes of requests that were read together with this program.
#
# The first cell waits for all that is imported here, so little is: not even `json`, `ast` and `signal`, whose parts in C do.
import builtins
import os
import sys

import _ast
import _signal
from _json import encode_basestring_ascii

# Where the channel is kept, out of the way of programs that use low numbers.
IN, OUT, ERR = 190, 191, 192
PIECE = 3900
TEXT_LIMIT = 1 << 20
RESULT_LIMIT = 24 << 20
ONLY_AST, TOP_LEVEL_AWAIT = 0x400, 0x2000  # of compile()
ROWS_LIMIT = 1000

REPRS = (
    ("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)  # fmt: skip


class Kernel:
    def __init__(self, rest):
        self.buffer = rest
        self.mark = b""
        self.running = False
        self.count = 0
        self.loop = None
        self.sources = {}  # of cells, until somebody wants to show lines of them
        self.main = type(sys)("__main__")
        self.main.__builtins__ = builtins
        sys.modules["__main__"] = self.main

    # The channel.

    def take_descriptors(self):
        for number, own in ((0, IN), (1, OUT), (2, ERR)):
            os.dup2(number, own, inheritable=False)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)

    def restore_descriptors(self):
        os.dup2(OUT, 1)
        os.dup2(ERR, 2)
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = getattr(sys, name)
            if stream is None or getattr(stream, "closed", False):
                stream = open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
                setattr(sys, name, stream)

    def next_request(self):
        while b"\n" not in self.buffer:
            part = os.read(IN, 1 << 16)
            if not part:
                os._exit(0)
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        # The server's JSON has no words, only texts, numbers and objects: it reads as Python.
        return eval(line.decode(), {"__builtins__": {}})

    def say(self, message, to=OUT):
        data = as_json(message).encode()
        self.flush()
        if len(data) > RESULT_LIMIT:
            note = f"a result of {len(data)} bytes was left out: at most {RESULT_LIMIT}"
            data = as_json({"t": "result", "main": False, "data": {"text/plain": note}}).encode()
        for start in range(0, len(data) or 1, PIECE):
            part = data[start : start + PIECE]
            flag = b"." if start + PIECE >= len(data) else b"+"
            piece = b"\x1e%s%04x%s%s" % (self.mark, len(part), flag, part)
            while piece:
                piece = piece[os.write(to, piece) :]

    def flush(self):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    # What values look like.

    def bundle(self, value, plain=True):
        found = {}
        frame = self.data_frame(value)
        if frame:
            found.update(frame)
        if self.is_figure(value):
            found["image/png"] = self.figure_png(value)
            self.close_figure(value)
        if not isinstance(value, type):
            method = getattr(value, "_repr_mimebundle_", None)
            if method:
                made = self.quietly(lambda: method(include=None, exclude=None))
                made = made[0] if isinstance(made, tuple) else made
                found.update({kind: self.as_text(item) for kind, item in (made or {}).items()})
            for name, kind in REPRS:
                method = getattr(value, name, None)
                if kind in found or not callable(method):
                    continue
                made = self.quietly(method)
                made = made[0] if isinstance(made, tuple) else made
                if made is not None:
                    found[kind] = made if kind == "application/json" else self.as_text(made)
        if plain and "text/plain" not in found:
            text = repr(value)
            found["text/plain"] = text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "..."
        return found

    def quietly(self, call):
        try:
            return call()
        except Exception:
            return None

    def as_text(self, value):
        if isinstance(value, (bytes, bytearray)):
            import base64

            return base64.b64encode(value).decode()
        return value

    def data_frame(self, value):
        pandas = sys.modules.get("pandas")
        kind = getattr(pandas, "DataFrame", None)
        if kind is None or not isinstance(value, kind):
            return None
        import json

        # Only the first rows travel; an index that says something is a column too.
        head = value.head(ROWS_LIMIT)
        if not isinstance(head.index, pandas.RangeIndex):
            head = head.reset_index()
        columns = [{"name": str(name), "dtype": str(dtype)} for name, dtype in zip(head.columns, head.dtypes)]
        rows = json.loads(head.to_json(orient="values", date_format="iso", default_handler=str))
        values = {column["name"]: [row[i] for row in rows] for i, column in enumerate(columns)}
        return {
            "application/x-atoll-dataframe+json": {
                "columns": columns, "rows": rows, "truncated": len(value) > ROWS_LIMIT
            },
            "application/x-atoll-data+json": values,
        }  # fmt: skip

    def display(self, *values, raw=False, **_):
        import json

        for value in values:
            if raw and isinstance(value, dict):
                self.say({"t": "result", "main": False, "data": {k: self.as_text(v) for k, v in value.items()}})
                continue
            data = self.bundle(value)
            if set(data) == {"text/plain"} and isinstance(value, (dict, list, tuple, int, float, bool)):
                plain = self.quietly(lambda value=value: json.loads(json.dumps(value, allow_nan=False)))
                if plain is not None:
                    data["application/json"] = plain
            self.say({"t": "result", "main": False, "data": data})

    # Figures, without importing matplotlib where the program has not.

    def is_figure(self, value):
        module = sys.modules.get("matplotlib.figure")
        return module is not None and isinstance(value, getattr(module, "Figure", ()))

    def figure_png(self, figure):
        import base64
        import io

        file = io.BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight")
        return base64.b64encode(file.getvalue()).decode()

    def open_figures(self):
        module = sys.modules.get("matplotlib._pylab_helpers")
        return [manager.canvas.figure for manager in module.Gcf.get_all_fig_managers()] if module else []

    def close_figure(self, figure):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(figure)

    def show_figures(self, *_, **__):
        for figure in self.open_figures():
            if figure.axes or getattr(figure, "texts", None):
                data = {"image/png": self.figure_png(figure), "text/plain": repr(figure)}
                self.say({"t": "result", "main": False, "data": data})
            self.close_figure(figure)

    # Cells.

    def run(self, request):
        self.count += 1
        kept = {name: os.environ.get(name) for name in request.get("env", {})}
        os.environ.update(request.get("env", {}))
        status = 0
        self.say({"t": "begin", "n": self.count})
        self.say({"t": "begin"}, ERR)
        try:
            try:
                self.running = True
                self.run_cell(request["code"])
                self.show_figures()
            finally:
                self.running = False
        except BaseException as error:
            status = 1
            self.say(self.describe(error))
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.finish(status)

    def finish(self, status):
        self.flush()
        self.restore_descriptors()
        self.say({"t": "end", "code": status})
        self.say({"t": "end"}, ERR)

    def run_cell(self, code):
        name = f"<cell {self.count}>"
        try:
            tree = compile(code, name, "exec", ONLY_AST | TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError:
            easier = plain_python(code)
            if easier == code:
                self.remember(name, code)
                raise
            code = easier
            tree = compile(code, name, "exec", ONLY_AST | TOP_LEVEL_AWAIT, dont_inherit=True)
        self.remember(name, code)
        last = None
        if tree.body and isinstance(tree.body[-1], _ast.Expr) and not code.rstrip().endswith(";"):
            last = _ast.Expression(tree.body.pop().value)
        self.evaluate(compile(tree, name, "exec", TOP_LEVEL_AWAIT, dont_inherit=True))
        if last is None:
            return
        value = self.evaluate(compile(last, name, "eval", TOP_LEVEL_AWAIT, dont_inherit=True))
        if value is None:
            return
        self.main.__dict__["_"] = value
        self.say({"t": "result", "main": True, "data": self.bundle(value)})

    def remember(self, name, code):
        self.sources[name] = code
        if "linecache" in sys.modules:
            self.tell_sources(sys.modules["linecache"])

    def tell_sources(self, linecache):
        for name, code in self.sources.items():
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        self.sources.clear()

    def evaluate(self, code):
        value = eval(code, self.main.__dict__)
        if not code.co_flags & 0x80:  # a coroutine
            return value
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(value)

    def describe(self, error):
        import traceback

        here = error.__traceback__
        while here is not None and here.tb_frame.f_code.co_filename == "<atoll kernel>":
            here = here.tb_next
        if isinstance(error, SyntaxError) and here is not None and here.tb_next is None:
            here = None  # nothing ran: it was the reading that failed
        try:
            text = "".join(traceback.format_exception(type(error), error, here))
            value = str(error)
        except Exception as other:
            text = value = f"(the error cannot be shown: {type(other).__name__})"
        name = type(error).__name__
        return {"t": "error", "name": name, "value": value[:TEXT_LIMIT], "traceback": text[-TEXT_LIMIT:]}

    # A branch: this process twice, the second with a channel of its own that a waiting process brings.

    def fork(self, request):
        import socket

        self.say({"t": "begin"})
        self.say({"t": "begin"}, ERR)
        status = 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind("\0" + request["door"])
            door.listen(1)
            door.settimeout(10)
            self.say({"t": "listening"})
            try:
                guest, _ = door.accept()
                _, streams, _, _ = socket.recv_fds(guest, 1, 3)
                status = 0 if len(streams) == 3 and is_own(guest) else 1
            except OSError:
                streams = []
            if status == 0 and self.become_branch(guest, streams):
                return
            for number in streams:
                os.close(number)
        self.finish(status)

    def become_branch(self, guest, streams):
        self.flush()
        first = os.fork()
        if first:
            os.waitpid(first, 0)
            guest.close()
            return False
        if os.fork():
            os._exit(0)
        os.setsid()
        for number, own in zip(streams, (IN, OUT, ERR)):
            os.dup2(number, own, inheritable=False)
            os.close(number)
        self.restore_descriptors()
        self.buffer = b""
        self.loop = None
        guest.send(str(os.getpid()).encode())
        self.guest = guest  # open for as long as this process lives
        return True

    def serve(self):
        while True:
            try:
                request = self.next_request()
                self.mark = request["mark"].encode()
                if request["op"] == "run":
                    self.run(request)
                elif request["op"] == "fork":
                    self.fork(request)
            except KeyboardInterrupt:
                pass


def as_json(value):
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # halves of characters are no text
            value = value.encode("utf-8", "backslashreplace").decode()
        return encode_basestring_ascii(value)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, dict):
        return "{" + ",".join(as_json(str(key)) + ":" + as_json(item) for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(as_json, value)) + "]"
    return as_json(str(value))


def is_own(guest):
    import socket
    import struct

    _, uid, _ = struct.unpack("3i", guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid == os.getuid()


def plain_python(code):
    """The few things that notebooks write beside Python: !command, %pip, %cd, %matplotlib."""
    lines = []
    for line in code.split("\n"):
        text = line.lstrip()
        space = line[: len(line) - len(text)]
        if text.startswith("!"):
            line = f"{space}_exit_code = __import__('subprocess').run({text[1:]!r}, shell=True).returncode"
        elif text.startswith("%pip "):
            command = sys.executable + " -m " + text[1:]
            line = f"{space}_exit_code = __import__('subprocess').run({command!r}, shell=True).returncode"
        elif text.startswith("%cd "):
            line = f"{space}__import__('os').chdir(__import__('os').path.expanduser({text[4:].strip()!r}))"
        elif text.startswith("%matplotlib"):
            line = space + "pass"
        lines.append(line)
    return "\n".join(lines)


class Hooks:
    """Tells libraries how to display, when and if a program imports them."""

    WANTED = ("matplotlib", "IPython.core.display_functions", "linecache")

    def __init__(self, kernel):
        self.kernel = kernel

    def find_spec(self, name, path=None, target=None):
        if name == "atoll_display":
            import importlib.machinery

            return importlib.machinery.ModuleSpec(name, self)
        if name not in self.WANTED:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            self.tell(module)

        spec.loader.exec_module = load_and_tell
        return spec

    def tell(self, module):
        if module.__name__ == "matplotlib" and "MPLBACKEND" not in os.environ:
            self.kernel.quietly(lambda: module.rcParams.__setitem__("backend", "module://atoll_display"))
        elif module.__name__ == "linecache":
            self.kernel.tell_sources(module)
        elif module.__name__ != "matplotlib":
            module.display = self.kernel.display

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        from matplotlib.backend_bases import FigureManagerBase
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        module.FigureCanvas = FigureCanvasAgg
        module.FigureManager = FigureManagerBase
        module.show = self.kernel.show_figures


def start(rest):
    kernel = Kernel(rest)
    kernel.take_descriptors()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def interrupted(*_):
        if kernel.running:
            raise KeyboardInterrupt

    _signal.signal(_signal.SIGINT, interrupted)
    sys.meta_path.insert(0, Hooks(kernel))
    sys.argv = [""]
    builtins.display = kernel.display
    kernel.serve()


start(rest)
