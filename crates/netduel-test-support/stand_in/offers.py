"""What the stand-in offers: sizes, quotas and prices. Where they are unlike those of Azure, a test needs a refusal."""
import re
import urllib.parse

# The region with a quota that is nearly used up is the last one.
REGIONS = {"westeurope": "West Europe", "northeurope": "North Europe", "francecentral": "France Central"}
PRICES_HOST = "prices.azure.com"
HOURLY = 0.25

# Size -> family, NICs, and what differs from a size that can be used.
SIZES = {
    "Standard_D4s_v3": ("standardDSv3Family", 2, {}),
    "Standard_DS2_v2": ("standardDSv2Family", 2, {}),
    "Standard_DS4_v2": ("standardDSv2Family", 8, {}),
    "Standard_D8s_v4": ("standardDSv4Family", 4, {}),
    "Standard_E192ids_v6": ("standardEIDSv6Family", 8, {}),
    "Standard_D8s_v3": ("standardDSv3Family", 4, {"AcceleratedNetworkingEnabled": "False"}),
    "Standard_D16s_v3": ("standardDSv3Family", 1, {}),
    "Standard_D32s_v3": ("standardDSv3Family", 8, {"restricted": True}),
}


def skus():
    for name, (family, nics, differing) in SIZES.items():
        capabilities = {"AcceleratedNetworkingEnabled": "True", "MaxNetworkInterfaces": str(nics)}
        capabilities.update((key, value) for key, value in differing.items() if key in capabilities)
        restriction = {
            "type": "Location", "values": list(REGIONS), "reasonCode": "NotAvailableForSubscription",
            "restrictionInfo": {"locations": list(REGIONS)},
        }
        yield {
            "resourceType": "virtualMachines", "name": name, "tier": "Standard", "size": name.removeprefix("Standard_"), "family": family,
            "locations": list(REGIONS), "locationInfo": [{"location": region, "zones": ["1"], "zoneDetails": []} for region in REGIONS],
            "restrictions": [restriction] if "restricted" in differing else [],
            "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        }


def usages(region):
    used = 995 if region == "francecentral" else 4
    for family in sorted({family for family, _, _ in SIZES.values()} | {"cores"}):
        yield {"limit": 1000, "unit": "Count", "currentValue": used, "name": {"value": family, "localizedValue": family}}


def prices(query):
    """A page of the Retail Prices API, which knows dollars only."""
    if "$skip" in query:
        return {"Items": [], "NextPageLink": None, "Count": 0}
    wanted = dict(re.findall(r"(\w+) eq '([^']*)'", query.get("$filter", "")))
    size, currency = wanted.get("armSkuName", ""), query.get("currencyCode", "").strip("'")
    short = size.removeprefix("Standard_").replace("_", " ")
    product = "Virtual Machines Series"
    kinds = [
        (HOURLY * 3, "Reservation", product, short),
        (HOURLY * 2, "Consumption", f"{product} Windows", short),
        (HOURLY / 5, "Consumption", product, f"{short} Spot"),
        (HOURLY, "Consumption", product, short),
    ]
    items = [{
        "retailPrice": amount, "unitOfMeasure": "1 Hour", "type": kind, "productName": product, "skuName": name, "armSkuName": size,
        "armRegionName": wanted.get("armRegionName"), "serviceName": "Virtual Machines", "currencyCode": "USD", "isPrimaryMeterRegion": True,
    } for amount, kind, product, name in kinds] if currency == "USD" and size in SIZES else []
    following = urllib.parse.urlencode({**query, "$skip": len(items)})
    return {"Items": items, "Count": len(items), "NextPageLink": f"https://{PRICES_HOST}/api/retail/prices?{following}" if items else None}
