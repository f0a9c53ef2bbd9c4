# Reads the symbols of the modules that the stopped kernel has loaded, of those that lie in DIRECTORIES.
python
import os

def loaded():
    kind = gdb.lookup_type("struct module")
    offset = next(field.bitpos for field in kind.fields() if field.name == "list") // 8
    head = gdb.parse_and_eval("&modules")
    at = head["next"]
    while int(at) != int(head):
        yield gdb.Value(int(at) - offset).cast(kind.pointer()).dereference()
        at = at["next"]

def sections(module):
    attributes = module["sect_attrs"]
    for number in range(int(attributes["nsections"])):
        one = attributes["attrs"][number]
        yield one["battr"]["attr"]["name"].string(), int(one["address"])

def start(module):
    names = [field.name for field in module.type.fields()]
    return int(module["mem"][0]["base"] if "mem" in names else module["core_layout"]["base"])

there = {}
for directory in DIRECTORIES:
    for name in os.listdir(directory):
        if name.endswith(".ko"):
            there[name[:-3].replace("-", "_")] = os.path.join(directory, name)
for module in loaded():
    file = there.get(module["name"].string())
    if not file:
        continue
    try:
        places = dict(sections(module))
    except gdb.error:  # from Linux 6.14 on they are elsewhere
        places = {}
    text = places.get(".text", start(module))
    others = " ".join(f"-s {name} {places[name]:#x}" for name in (".data", ".bss", ".rodata") if name in places)
    gdb.execute(f"add-symbol-file {file} {text:#x} {others}", to_string=True)
end
