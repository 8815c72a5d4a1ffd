#!/usr/bin/env python3
"""Makes one expression of sucrase's modules: `bundle_sucrase.py NODE_MODULES ENTRY OUTPUT`.

Its value is what ENTRY, a module beside sucrase's own, exports."""

import pathlib
import posixpath
import re
import sys

PACKAGES = {
    "lines-and-columns": "lines-and-columns/build/index.js",
    "ts-interface-checker": "ts-interface-checker/dist/index.js",
    "@jridgewell/gen-mapping": None,
}
REQUIRE = re.compile(r"""require\(\s*['"]([^'"]+)['"]\s*\)""")


def main():
    modules, entry, output = map(pathlib.Path, sys.argv[1:])
    texts = {"sucrase/dist/entry.js": entry.read_text()}
    waiting = list(texts)
    while waiting:
        name = waiting.pop()

        def place(match, name=name):
            asked = match[1]
            if asked.startswith("."):
                found = posixpath.normpath(posixpath.join(posixpath.dirname(name), asked))
                options = [found, found + ".js", found + "/index.js"]
                found = next(one for one in options if (modules / one).is_file())
            elif asked not in PACKAGES:  # in a comment or a string
                return match[0]
            else:
                found = PACKAGES[asked]
            if found is None:  # source maps, which nobody asks for
                return "({})"
            if found not in texts:
                texts[found] = (modules / found).read_text()
                waiting.append(found)
            return f'__need("{found}")'

        texts[name] = REQUIRE.sub(place, texts[name])
    parts = [f'"{name}": function (exports, module) {{{text}\n}}' for name, text in sorted(texts.items())]
    loader = """(() => {
const made = {};
const __need = (name) => {
  if (!made[name]) { made[name] = { exports: {} }; all[name](made[name].exports, made[name]); }
  return made[name].exports;
};
const all = {"""
    end = '};\nreturn { strip: (c) => __need("sucrase/dist/entry.js").strip(c), read: (c) => __need("sucrase/dist/entry.js").read(c) };\n})()'
    text = loader + ",\n".join(parts) + end
    text = re.sub(r"//# sourceMappingURL=\S+", "", text)
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
