"""Makes openapi.json of openapi.yaml: `python3 openapi.py FROM TO`.

The runtime is described once, below /v1/sandboxes/{id}/runtime; the other two places where the same is served are added
here, so that no two descriptions of one thing can differ.
"""

import copy
import json
import sys

import yaml

RUNTIME = "/v1/sandboxes/{id}/runtime"
COPIES = {"/v1/sidecar-proxy/{id}": "Proxied", "/runtime/{id}": "Direct"}
METHODS = ("get", "put", "post", "delete", "patch")


def add_copies(paths):
    for path, item in list(paths.items()):
        if not path.startswith(RUNTIME + "/"):
            continue
        for base, suffix in COPIES.items():
            twin = copy.deepcopy(item)
            for method in METHODS:
                if method in twin:
                    twin[method]["operationId"] += suffix
            paths[base + path.removeprefix(RUNTIME)] = twin


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    if isinstance(node, list):
        for value in node:
            yield from references(value)


def check(document):
    """What a mistake in the file would break for every reader."""
    for reference in references(document):
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
    ids = [item[method]["operationId"] for item in document["paths"].values() for method in METHODS if method in item]
    doubled = {one for one in ids if ids.count(one) > 1}
    if doubled:
        sys.exit(f"doubled operation ids: {doubled}")


def main(source, target):
    with open(source, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    for name in [name for name in document if name.startswith("x-shared-")]:  # anchors only
        del document[name]
    add_copies(document["paths"])
    check(document)
    with open(target, "w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
