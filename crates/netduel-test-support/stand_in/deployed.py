"""The subscription of the stand-in: groups, deployments, and what Azure shows of the resources in them. It knows no request."""
import json
import re

TENANT = "11111111-1111-1111-1111-111111111111"
SUBSCRIPTION = "22222222-2222-2222-2222-222222222222"
NIC_TYPE = "Microsoft.Network/networkInterfaces"
ADDRESS_TYPE = "Microsoft.Network/publicIPAddresses"
VM_TYPE = "Microsoft.Compute/virtualMachines"
PLACEMENT_TYPE = "Microsoft.Compute/proximityPlacementGroups"
# The user of the VMs. The sshd of a test takes its own user.
ADMIN = "root"

groups = {}  # lower-case name -> resource group
deployments = {}  # (group, deployment), lower case -> the deployment with "template" and "looks"
# What was changed after the deployment, by (group, resource), lower case.
running = {}  # VM -> whether it runs
flags = {}  # NIC -> whether accelerated networking is on
placements = {}  # VM -> the id of its proximity placement group, or None
claims_file = None  # set by arm.py


def claims(name):
    """What a test wants claimed of a VM or NIC instead of the usual: `mac`, `address` and `accelerated` of a NIC, `id` of a VM."""
    if not claims_file.exists():
        return {}
    return json.loads(claims_file.read_text(encoding="utf-8")).get(name, {})


def add_group(name, location, tags):
    groups[name] = {
        "id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}", "name": name, "type": "Microsoft.Resources/resourceGroups",
        "location": location, "tags": tags, "properties": {"provisioningState": "Succeeded"},
    }


def remove_group(name):
    del groups[name]
    for kept in (deployments, running, flags, placements):
        for owner in [owner for owner in kept if owner[0] == name]:
            del kept[owner]


def is_running(group, vm):
    return running.get((group, vm.lower()), group != "netduel-stopped")


def number_of(name):
    """The number of the VM that a resource belongs to: 2 of `vm2-accelerated`."""
    return int(re.match(r"vm(\d+)", name).group(1))


def of_type(template, kind):
    return [resource for resource in template["resources"] if resource["type"] == kind]


def subnet_of(template, nic):
    """The name of the subnet of a NIC, and its place in the network."""
    expression = template_nic(template, nic)["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"]
    name = expression.split("'")[5]
    subnets = of_type(template, "Microsoft.Network/virtualNetworks")[0]["properties"]["subnets"]
    return name, [subnet["name"] for subnet in subnets].index(name)


def template_nic(template, name):
    return next(nic for nic in of_type(template, NIC_TYPE) if nic["name"] == name)


def public_address(name):
    return f"192.0.2.{6 + number_of(name)}"


def private_address(template, nic, configuration):
    claimed = claims(nic).get("address")
    if claimed and configuration == 0:
        return claimed
    # The spare NIC of a VM is in the subnet of its test NIC.
    number, (_, place) = 3 + number_of(nic) + (16 if nic.endswith("-spare") else 0), subnet_of(template, nic)
    return f"10.77.{place}.{number}" if configuration == 0 else f"fd77:6e64:0:{place}::{number}"


def address(template, expression):
    """The value of an expression of an output, which is an address."""
    name = expression.split("'")[3]
    found = re.search(r"ipConfigurations\[(\d+)\]", expression)
    return private_address(template, name, int(found.group(1))) if found else public_address(name)


def evaluated(template, value):
    if isinstance(value, dict):
        return {key: evaluated(template, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [evaluated(template, inner) for inner in value]
    if isinstance(value, str) and value.startswith("["):
        return address(template, value)
    return value


def outputs(template):
    return {name: {"type": "Array", "value": evaluated(template, output["value"])}
            for name, output in template.get("outputs", {}).items()}


def resource(group, kind, name):
    identity = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"
    return {"id": identity, "name": name, "type": kind, "location": groups[group]["location"], "resourceGroup": group}


def flag(group, nic, properties):
    """Whether accelerated networking is on: as the test claims, else as it was changed, else as in the template."""
    of_template = flags.get((group, nic.lower()), properties["enableAcceleratedNetworking"])
    return claims(nic).get("accelerated", of_template)


def nics(group, template):
    """The NICs of a deployment, as the resource manager shows them."""
    machines = of_type(template, VM_TYPE)
    for nic in of_type(template, NIC_TYPE):
        name, properties = nic["name"], nic["properties"]
        subnet, place = subnet_of(template, name)
        attached = [vm for vm in machines
                    if any(name in one["id"] for one in vm["properties"]["networkProfile"]["networkInterfaces"])]
        configurations = []
        for index, configuration in enumerate(properties["ipConfigurations"]):
            shown = {
                "privateIPAddress": private_address(template, name, index), "privateIPAddressVersion": "IPv4" if index == 0 else "IPv6",
                "privateIPAllocationMethod": "Dynamic", "primary": index == 0,
                "subnet": {"id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/n/subnets/{subnet}"},
            }
            if configuration["properties"].get("publicIPAddress"):
                public = resource(group, ADDRESS_TYPE, f"vm{number_of(name)}-address")
                shown["publicIPAddress"] = {"id": public["id"]}
            configurations.append({"name": configuration["name"], "properties": shown})
        shown = {
            "enableAcceleratedNetworking": flag(group, name, properties), "ipConfigurations": configurations,
            "provisioningState": "Succeeded",
        }
        if attached:
            shown["macAddress"] = claims(name).get("mac") or f"00-0D-3A-00-{place:02X}-{number_of(name):02X}"
            shown["virtualMachine"] = {"id": resource(group, VM_TYPE, attached[0]["name"])["id"]}
        yield {**resource(group, NIC_TYPE, name), "properties": shown}


def public_addresses(group, template):
    for one in of_type(template, ADDRESS_TYPE):
        shown = {"ipAddress": public_address(one["name"]), "publicIPAddressVersion": "IPv4", "provisioningState": "Succeeded"}
        yield {**resource(group, ADDRESS_TYPE, one["name"]), "properties": shown}


def placement_groups(group, template):
    for one in of_type(template, PLACEMENT_TYPE):
        yield {**resource(group, PLACEMENT_TYPE, one["name"]), "properties": {"proximityPlacementGroupType": "Standard"}}


def machines(group, template):
    for vm in of_type(template, VM_TYPE):
        properties = vm["properties"]
        attached = [{"id": resource(group, NIC_TYPE, one["id"].split("'")[3])["id"], "properties": {"primary": index == 0}}
                    for index, one in enumerate(properties["networkProfile"]["networkInterfaces"])]
        shown = {
            "hardwareProfile": properties["hardwareProfile"], "provisioningState": "Succeeded",
            "osProfile": {"computerName": vm["name"], "adminUsername": ADMIN}, "networkProfile": {"networkInterfaces": attached},
            "storageProfile": {"osDisk": {"osType": "Linux", "createOption": "FromImage", "name": system_disk(vm["name"])}},
        }
        for key in ("proximityPlacementGroup", "availabilitySet"):
            if key in properties:
                shown[key] = {"id": resource(group, *properties[key]["id"].split("'")[1::2])["id"]}
        placement = placements.get((group, vm["name"].lower()), ...)
        if placement is not ...:
            shown.pop("proximityPlacementGroup", None)
            shown.update({"proximityPlacementGroup": {"id": placement}} if placement else {})
        if claims(vm["name"]).get("id"):
            shown["vmId"] = claims(vm["name"])["id"]
        # `zones` is beside the properties.
        zones = {"zones": vm["zones"]} if "zones" in vm else {}
        yield {**resource(group, VM_TYPE, vm["name"]), **zones, "properties": shown}


def resources(group):
    """What a group has, as the list of all types shows it. Azure creates the system disks of VMs, without tags."""
    for template in [one["template"] for (owner, _), one in deployments.items() if owner == group]:
        for one in template["resources"]:
            yield {**resource(group, one["type"], one["name"]), "tags": groups[group]["tags"] if "tags" in one else None}
        for vm in of_type(template, VM_TYPE):
            yield {**resource(group, "Microsoft.Compute/disks", system_disk(vm["name"])), "managedBy": resource(group, VM_TYPE, vm["name"])["id"]}
    if group == "netduel-shared":
        yield resource(group, "Microsoft.Storage/storageAccounts", "archive")


def system_disk(vm):
    return f"{vm}_OsDisk_1_0123456789abcdef"


def instance_view(group, name):
    state = "running" if is_running(group, name) else "deallocated"
    return {"statuses": [
        {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"},
        {"code": f"PowerState/{state}", "level": "Info", "displayStatus": f"VM {state}"},
    ]}
