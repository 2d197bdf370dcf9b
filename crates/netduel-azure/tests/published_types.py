#!/usr/bin/env python3
"""Derives tests/it/published_types.txt from a clone of Azure/bicep-types-az: published_types.py CLONE FILE [TYPE@VERSION PATH]...

It rewrites each line of the file from the published types, adds the properties of the arguments, and adds those that a property in the file
requires beside it. It fails for a property that is not published, or that can only be read."""
import json
import subprocess
import sys

REQUIRED, READ_ONLY = 1, 2
# More named values than these are a list of examples, as that of the sizes of VMs is.
VALUES_MAX = 16
# Keys that every resource has, and that no type describes.
OF_EVERY_RESOURCE = {"name", "type", "apiVersion", "id"}

clone, file, *added = sys.argv[1:]


def git(*words):
    return subprocess.check_output(["git", "-C", clone, *words], text=True)


listing = git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
tables = {}


def body(name):
    """The table of types that has a resource type, and the type of its body."""
    kind, version = name.split("@")
    end = f"/{kind.split('/')[0]}/{version}/types.json".lower()
    for path in (path for path in listing if path.lower().endswith(end)):
        if path not in tables:
            tables[path] = json.loads(git("show", f"HEAD:{path}"))
        for entry in tables[path]:
            if entry["$type"] == "ResourceType" and entry["name"].lower() == name.lower():
                return tables[path], entry["body"]
    sys.exit(f"{name} is not published")


def resolved(table, reference):
    return table[int(reference["$ref"].split("/")[-1])]


def kind_of(table, one):
    """A type in a word: of values, those that are named."""
    if one["$type"] == "UnionType":
        elements = [resolved(table, element) for element in one["elements"]]
        values = [element["value"] for element in elements if element["$type"] == "StringLiteralType"]
        return "|".join(values) if 0 < len(values) <= VALUES_MAX else "string"
    if one["$type"] == "StringLiteralType":
        return one["value"]
    return one["$type"].removesuffix("Type").lower()


def step(table, one, key, line):
    properties = one.get("properties", {})
    if key not in properties:
        if one.get("additionalProperties"):
            return resolved(table, one["additionalProperties"]), 0
        sys.exit(f"{line} is not published")
    return resolved(table, properties[key]["type"]), properties[key].get("flags", 0)


def described(line):
    """The lines of a property and of what is required beside it and beside what it is in."""
    name, path = line.split(" ")[:2]
    table, reference = body(name)
    one, found, before = resolved(table, reference), {}, ""
    for part in path.split("."):
        if one["$type"] == "ObjectType":
            for key, property in one["properties"].items():
                if property.get("flags", 0) & REQUIRED and (before or key not in OF_EVERY_RESOURCE):
                    beside = f"{before}{key}"
                    found[f"{name} {beside}"] = (kind_of(table, resolved(table, property["type"])), True)
        key = part.removesuffix("[]")
        one, flags = step(table, one, key, line)
        if flags & READ_ONLY and key != "id":
            sys.exit(f"{line} can only be read")
        if part.endswith("[]"):
            if one["$type"] != "ArrayType":
                sys.exit(f"{line}: {part} is no list")
            one = resolved(table, one["itemType"])
        before += f"{part}."
    found[f"{name} {path}"] = (kind_of(table, one), bool(flags & REQUIRED))
    return found


lines = [line.rstrip("\n") for line in open(file, encoding="utf-8")]
known = [line for line in lines if line and not line.startswith("#")] + added
groups, all_found = {}, {}
for line in known:
    groups.setdefault(line.split("@")[0], []).append(line)
for kind, own in groups.items():
    found = {}
    for line in own:
        found.update(described(line))
    all_found[kind] = found
commit = git("log", "-1", "--format=%H, %cs", "HEAD").strip()
with open(file, "w", encoding="utf-8") as out:
    out.write(
        "# Properties of resource types that templates use, from the types that Azure publishes for Bicep: repository Azure/bicep-types-az, commit\n"
        f"# {commit}. Written by ../published_types.py, which adds properties, too.\n"
        "# A line is TYPE@VERSION PATH KIND; [] in a path stands for the elements of a list, and a kind with | for the published values.\n"
        "# required: what is around it does not exist without it.\n"
    )
    for found in all_found.values():
        out.write("\n")
        for name in sorted(found, key=lambda name: (name.count("."), name)):
            what, is_required = found[name]
            out.write(f"{name} {what}{' required' if is_required else ''}\n")
