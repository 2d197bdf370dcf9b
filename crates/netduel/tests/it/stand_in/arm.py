#!/usr/bin/env python3
"""A stand-in for the endpoints of Azure that `az` talks to (login and resource manager), on loopback: arm.py CERTIFICATE KEY

It prints its port and serves until its standard input ends. It has one subscription with one region. It keeps resource groups and deployments,
and evaluates no expression of a template but names and addresses. The VMs of a deployment run as soon as it is complete; what they are is the
work of the test. The name of a resource group selects a fault:

  netduel-quota      the validation of a deployment fails: a quota is too small
  netduel-conflict   the request for a deployment is a conflict (409), and its operations have the cause
  netduel-expired    every request in the group fails: the token has expired
  netduel-slow       the first look at a deployment is refused (429 with Retry-After)
  netduel-stopped    the VMs are deallocated until they are started
  netduel-cut        the connection of the first look at a deployment is closed without an answer
  netduel-shared     the group has a storage account of somebody else
"""
import base64
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TENANT = "11111111-1111-1111-1111-111111111111"
SUBSCRIPTION = "22222222-2222-2222-2222-222222222222"
REGION = "westeurope"
RESOURCE_TYPES = {
    "Microsoft.Compute": ["virtualMachines", "availabilitySets", "proximityPlacementGroups", "locations", "skus"],
    "Microsoft.Network": ["networkInterfaces", "virtualNetworks", "networkSecurityGroups", "publicIPAddresses", "locations"],
    "Microsoft.Resources": ["deployments", "resourceGroups", "subscriptions"],
    "Microsoft.DevTestLab": ["schedules"],
}

NIC_TYPE = "Microsoft.Network/networkInterfaces"
ADDRESS_TYPE = "Microsoft.Network/publicIPAddresses"
VM_TYPE = "Microsoft.Compute/virtualMachines"
# The user of the VMs. The sshd of a test takes its own user.
ADMIN = "root"

lock = threading.Lock()
started = set()  # names of VMs, lower case
groups = {}  # lower-case name -> resource group
deployments = {}  # (group, deployment), lower case -> the deployment with "template" and "looks"


def failure(code, message, details=()):
    return {"error": {"code": code, "message": message, "details": list(details)}}


QUOTA = failure(
    "InvalidTemplateDeployment",
    "The template deployment 'netduel' is not valid according to the validation procedure. See inner errors for details.",
    [{"code": "QuotaExceeded",
      "message": "Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota. Additional details - "
                 "Deployment Model: Resource Manager, Location: westeurope, Current Limit: 10, Current Usage: 4, Additional Required: 8"}],
)
EXPIRED = failure("ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time")
NO_ROOM = failure("AllocationFailed", "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.")
SLOW = failure("TooManyRequests", "The request was throttled.")


def token(base):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    now = int(time.time())
    claims = {"aud": base, "iss": f"{base}/{TENANT}/", "iat": now, "nbf": now, "exp": now + 86400, "tid": TENANT,
              "oid": "33333333-3333-3333-3333-333333333333", "appid": "44444444-4444-4444-4444-444444444444", "idtyp": "app"}
    return ".".join([part({"typ": "JWT", "alg": "none"}), part(claims), "signature"])


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
    number, (_, place) = 3 + number_of(nic), subnet_of(template, nic)
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
    return {"id": identity, "name": name, "type": kind, "location": REGION, "resourceGroup": group}


def nics(group, template):
    """The NICs of a deployment, as the resource manager shows them. Each has the flag of the template."""
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
            "enableAcceleratedNetworking": properties["enableAcceleratedNetworking"], "ipConfigurations": configurations,
            "provisioningState": "Succeeded",
        }
        if attached:
            shown["macAddress"] = f"00-0D-3A-00-{place:02X}-{number_of(name):02X}"
            shown["virtualMachine"] = {"id": resource(group, VM_TYPE, attached[0]["name"])["id"]}
        yield {**resource(group, NIC_TYPE, name), "properties": shown}


def public_addresses(group, template):
    for one in of_type(template, ADDRESS_TYPE):
        shown = {"ipAddress": public_address(one["name"]), "publicIPAddressVersion": "IPv4", "provisioningState": "Succeeded"}
        yield {**resource(group, ADDRESS_TYPE, one["name"]), "properties": shown}


def machines(group, template):
    for vm in of_type(template, VM_TYPE):
        properties = vm["properties"]
        attached = [{"id": resource(group, NIC_TYPE, one["id"].split("'")[3])["id"], "properties": {"primary": index == 0}}
                    for index, one in enumerate(properties["networkProfile"]["networkInterfaces"])]
        shown = {
            "hardwareProfile": properties["hardwareProfile"], "provisioningState": "Succeeded",
            "osProfile": {"computerName": vm["name"], "adminUsername": ADMIN}, "networkProfile": {"networkInterfaces": attached},
            "storageProfile": {"osDisk": {"osType": "Linux", "name": system_disk(vm["name"])}},
        }
        yield {**resource(group, VM_TYPE, vm["name"]), "properties": shown}


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
    state = "deallocated" if group == "netduel-stopped" and name.lower() not in started else "running"
    return {"statuses": [
        {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"},
        {"code": f"PowerState/{state}", "level": "Info", "displayStatus": f"VM {state}"},
    ]}


def body_of(raw):
    """The body of a request. That of a deployment is not JSON: `az` inserts the template behind a key without quotes."""
    text = raw.decode()
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return json.loads(re.sub(r"([,{]\s*)template\s*:(\s*\{)", r'\1"template":\2', text, count=1))


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, value=None, headers=()):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(code)
        for name, content in headers:
            self.send_header(name, content)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        body = body_of(raw) if "json" in self.headers.get("Content-Type", "") else {}
        base = f"https://localhost:{self.server.server_port}"
        with lock:
            self.route(base, url.path, url.path.lower().rstrip("/"), query, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = handle_request

    def route(self, base, path, low, query, body):
        if self.login(base, path, low) or self.inventory(low):
            return
        if low == f"/subscriptions/{SUBSCRIPTION}/resources":
            wanted = re.search(r"resourcegroup eq '([^']*)'", query.get("$filter", ""), re.IGNORECASE)
            return self.answer(200, {"value": list(resources(wanted.group(1).lower())) if wanted else []})
        found = re.fullmatch(rf"/subscriptions/{SUBSCRIPTION}/resourcegroups(?:/([^/]+))?(/.*)?", low)
        if not found:
            return self.answer(404, failure("ResourceNotFound", f"The Resource '{path}' was not found."))
        group, rest = found.groups()
        if group == "netduel-expired":
            return self.answer(401, EXPIRED)
        if group is None:
            wanted = re.search(r"tagname eq '([^']*)'", query.get("$filter", ""), re.IGNORECASE)
            shown = [one for one in groups.values() if not wanted or wanted.group(1) in one["tags"]]
            return self.answer(200, {"value": shown})
        if not rest:
            return self.group(base, group, body)
        if self.deployed(group, rest, query):
            return
        deployment = re.fullmatch(r"/(?:providers/microsoft\.resources/)?deployments/([^/]+)(/.*)?", rest)
        if deployment:
            return self.deployment(base, path, group, deployment.group(1), deployment.group(2), body)
        self.answer(404, failure("ResourceNotFound", f"The Resource '{path}' was not found."))

    def login(self, base, path, low):
        if low.endswith("/.well-known/openid-configuration"):
            tenant = path.split("/")[1]
            self.answer(200, {
                "token_endpoint": f"{base}/{tenant}/oauth2/v2.0/token",
                "authorization_endpoint": f"{base}/{tenant}/oauth2/v2.0/authorize",
                "device_authorization_endpoint": f"{base}/{tenant}/oauth2/v2.0/devicecode",
                "issuer": f"{base}/{tenant}/v2.0",
                "tenant_region_scope": "EU",
            })
        elif low.endswith("/oauth2/v2.0/token"):
            self.answer(200, {"token_type": "Bearer", "expires_in": 86399, "ext_expires_in": 86399, "access_token": token(base)})
        elif low == "/metadata/endpoints":
            self.answer(200, {
                "name": "StandIn", "portal": base, "resourceManager": base, "resourceManagerEndpoint": base, "galleryEndpoint": base,
                "graphAudience": base, "graph": base, "media": base, "batch": base, "activeDirectoryDataLake": base,
                "microsoftGraphResourceId": base, "sqlManagement": base,
                "authentication": {"loginEndpoint": base, "audiences": [base], "tenant": "common", "identityProvider": "AAD"},
                "suffixes": {"storage": "localhost"},
            })
        else:
            return False
        return True

    def inventory(self, low):
        own = f"/subscriptions/{SUBSCRIPTION}"
        subscription = {
            "id": own, "subscriptionId": SUBSCRIPTION, "tenantId": TENANT, "displayName": "stand-in", "state": "Enabled",
            "subscriptionPolicies": {"locationPlacementId": "Public_2014-09-01", "quotaId": "x", "spendingLimit": "Off"},
            "authorizationSource": "RoleBased", "managedByTenants": [],
        }
        provider = re.fullmatch(rf"{own}/providers(?:/([^/]+))?", low)
        if low == "/tenants":
            self.answer(200, {"value": [{"id": f"/tenants/{TENANT}", "tenantId": TENANT, "displayName": "stand-in"}]})
        elif low == "/subscriptions":
            self.answer(200, {"value": [subscription]})
        elif low == own:
            self.answer(200, subscription)
        elif low == f"{own}/locations":
            self.answer(200, {"value": [{"name": REGION, "displayName": "West Europe", "metadata": {"regionType": "Physical"}}]})
        elif low.startswith("/operations/"):
            self.answer(200, {"status": "Succeeded", "name": "operation"})
        elif low == f"{own}/providers/microsoft.compute/skus":
            self.answer(200, {"value": [{
                "resourceType": "virtualMachines", "name": "Standard_D4s_v3", "tier": "Standard", "size": "D4s_v3", "family": "standardDSv3Family",
                "locations": [REGION], "locationInfo": [{"location": REGION, "zones": ["1"], "zoneDetails": []}], "restrictions": [],
                "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "AcceleratedNetworkingEnabled", "value": "True"},
                                 {"name": "MaxNetworkInterfaces", "value": "2"}],
            }]})
        elif low == f"{own}/providers/microsoft.compute/locations/{REGION}/usages":
            name = {"value": "standardDSv3Family", "localizedValue": "Standard DSv3 Family vCPUs"}
            self.answer(200, {"value": [{"limit": 100, "unit": "Count", "currentValue": 4, "name": name}]})
        elif provider:
            known = [{
                "id": f"{own}/providers/{namespace}", "namespace": namespace, "registrationState": "Registered",
                "resourceTypes": [{"resourceType": kind, "locations": ["West Europe"], "apiVersions": ["2024-07-01"], "capabilities": ""}
                                  for kind in kinds],
            } for namespace, kinds in RESOURCE_TYPES.items()]
            wanted = provider.group(1)
            one = [entry for entry in known if entry["namespace"].lower() == wanted]
            self.answer(200, one[0] if one else {"value": known})
        else:
            return False
        return True

    def group(self, base, name, body):
        if self.command == "PUT":
            groups[name] = {
                "id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}", "name": name, "type": "Microsoft.Resources/resourceGroups",
                "location": body["location"], "tags": body.get("tags") or {}, "properties": {"provisioningState": "Succeeded"},
            }
            return self.answer(201, groups[name])
        if name not in groups:
            return self.answer(404, failure("ResourceGroupNotFound", f"Resource group '{name}' could not be found."))
        if self.command == "DELETE":
            del groups[name]
            for owner in [owner for owner in deployments if owner[0] == name]:
                del deployments[owner]
            return self.answer(202, None, [("Location", f"{base}/operations/delete?api-version=x"), ("Retry-After", "0")])
        if self.command == "HEAD":
            return self.answer(204)
        return self.answer(200, groups[name])

    def deployed(self, group, rest, query):
        """What a deployment has made: lists, one of them, and the state of a VM."""
        found = re.fullmatch(r"/providers/(microsoft\.[a-z]+/[a-z]+)(?:/([^/]+))?(/instanceview|/start)?", rest)
        makers = {NIC_TYPE.lower(): nics, ADDRESS_TYPE.lower(): public_addresses, VM_TYPE.lower(): machines}
        if not found or found.group(1) not in makers:
            return False
        kind, name, action = found.groups()
        templates = [one["template"] for (owner, _), one in deployments.items() if owner == group]
        shown = [one for template in templates for one in makers[kind](group, template)]
        if action == "/start":
            started.add(name)
            self.answer(202, None)
        elif action:
            self.answer(200, instance_view(group, name))
        elif name is None:
            self.answer(200, {"value": shown})
        else:
            one = next((one for one in shown if one["name"].lower() == name), None)
            if one is None:
                self.answer(404, failure("ResourceNotFound", f"The Resource '{name}' was not found."))
            else:
                if kind == VM_TYPE.lower() and "instanceview" in query.get("$expand", "").lower():
                    one["properties"]["instanceView"] = instance_view(group, name)
                self.answer(200, one)
        return True

    def deployment(self, base, path, group, name, rest, body):
        known = deployments.get((group, name))
        if rest == "/validate":
            if group == "netduel-quota":
                return self.answer(400, QUOTA)
            return self.answer(200, {"id": path, "name": name, "properties": {"provisioningState": "Succeeded", "mode": "Incremental"}})
        if self.command == "PUT":
            template = body["properties"]["template"]
            deployments[(group, name)] = {"template": template, "looks": 0}
            if group == "netduel-conflict":
                return self.answer(409, NO_ROOM)
            shown = self.shown(path, name, deployments[(group, name)], "Accepted")
            return self.answer(201, shown, [("Azure-AsyncOperation", f"{base}/operations/deploy?api-version=x")])
        if known is None:
            return self.answer(404, failure("DeploymentNotFound", f"Deployment '{name}' could not be found."))
        if rest == "/operations":
            return self.answer(200, {"value": list(self.operations(group, known))})
        known["looks"] += 1
        if known["looks"] == 1 and group == "netduel-slow":
            return self.answer(429, SLOW, [("Retry-After", "0")])
        if known["looks"] == 1 and group == "netduel-cut":
            self.close_connection = True
            return self.connection.close()
        return self.answer(200, self.shown(path, name, known, "Running" if known["looks"] == 1 else "Succeeded"))

    def shown(self, path, name, deployment, state):
        return {
            "id": path, "name": name, "type": "Microsoft.Resources/deployments",
            "properties": {
                "provisioningState": state, "mode": "Incremental", "timestamp": "2026-01-01T00:00:00Z", "duration": "PT1S", "correlationId": "c",
                "providers": [], "dependencies": [], "outputResources": [],
                "outputs": outputs(deployment["template"]) if state == "Succeeded" else None,
            },
        }

    def operations(self, group, deployment):
        is_done = deployment["looks"] > 1
        for number, resource in enumerate(deployment["template"]["resources"]):
            is_failed = group == "netduel-conflict" and resource["type"].endswith("/virtualMachines")
            state = "Failed" if is_failed else "Succeeded" if is_done else "Running"
            target = {"id": f"/x/{resource['name']}", "resourceType": resource["type"], "resourceName": resource["name"]}
            yield {
                "id": f"/operations/{number}", "operationId": str(number),
                "properties": {
                    "provisioningOperation": "Create", "provisioningState": state, "timestamp": "2026-01-01T00:00:00Z", "duration": "PT1S",
                    "trackingId": "t", "statusCode": "Conflict" if is_failed else "OK", "targetResource": target,
                    "statusMessage": NO_ROOM if is_failed else None,
                },
            }


def main():
    certificate, key = sys.argv[1:3]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


main()
