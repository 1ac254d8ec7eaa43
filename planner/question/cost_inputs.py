"""The inputs about prices, power, carbon and evidence, each declared once (see `planner.question.inputs`)."""

from __future__ import annotations

from planner.question import names
from planner.question.input import Input, InputGroup
from planner.question.parsers import number, parse_date, parse_switch, parse_text, whole_number
from planner.units import parse_power_w

PRICE = Input(
    name="price",
    group=InputGroup.MONEY,
    metavar="USD",
    help="Price per GPU-hour.",
    default="the median of the providers' prices",
    parse=number(0, above=True),
)
PRICE_LIKE = Input(
    name="price_like",
    group=InputGroup.MONEY,
    metavar="GPU",
    help="Use this GPU's price for a GPU that has none.",
    parse=parse_text,
    choices=names.gpus,
)
PROVIDER = Input(
    name="provider",
    group=InputGroup.MONEY,
    metavar="NAME",
    help="Take prices from this provider of the price book.",
    parse=parse_text,
)
REGION = Input(
    name="region", group=InputGroup.MONEY, metavar="NAME", help="Region, for prices and grid carbon.", parse=parse_text
)
COMMITMENT = Input(
    name="commitment",
    group=InputGroup.MONEY,
    metavar="NAME",
    help="on-demand, spot, 1y or 3y.",
    default="on-demand",
    parse=parse_text,
)
AS_OF = Input(
    name="as_of",
    group=InputGroup.MONEY,
    metavar="DATE",
    help="Use prices as of this day, YYYY-MM-DD.",
    default="today",
    parse=parse_date,
    echoes_text=True,
)
QUOTE = Input(
    name="quote",
    group=InputGroup.MONEY,
    metavar="FILE",
    help="quote.toml: a vendor's offer, with its minimum term and fees.",
    parse=parse_text,
)
OWN = Input(
    name="own",
    group=InputGroup.MONEY,
    metavar="FILE",
    help="own.toml: machines you own, compared with renting.",
    parse=parse_text,
)
BESIDE = Input(
    name="beside",
    group=InputGroup.MONEY,
    metavar="FILE",
    help="beside.toml: costs beyond the GPUs (storage, egress, hosts, experiments).",
    parse=parse_text,
)
PUE = Input(
    name="pue",
    group=InputGroup.MONEY,
    metavar="X",
    help="Power usage effectiveness.",
    default="1.25, or the published PUE of the operator",
    parse=number(1, example="1.2"),
)
ELECTRICITY = Input(
    name="electricity",
    group=InputGroup.MONEY,
    metavar="USD",
    help="Electricity price per kWh, if billed separately.",
    parse=number(0, example="0.12"),
)
TARIFF = Input(
    name="tariff",
    group=InputGroup.MONEY,
    metavar="FILE",
    help="tariff.toml: electricity price by hour of the week.",
    parse=parse_text,
)
POWER_CAP = Input(
    name="power_cap",
    group=InputGroup.MONEY,
    metavar="POWER",
    help="Peak power that the facility can deliver, like 2MW.",
    parse=parse_power_w,
    echoes_text=True,
)
GRID = Input(
    name="grid",
    group=InputGroup.MONEY,
    metavar="ZONE|G",
    help="Grid zone, or g CO₂e per kWh (live:ZONE asks Electricity Maps).",
    default="the US average",
    parse=parse_text,
)
MARKET_GRID = Input(
    name="market_grid",
    group=InputGroup.MONEY,
    metavar="G",
    help="Market-based g CO₂e per kWh, by your electricity contracts; 0 is allowed.",
    parse=number(0, example="0 for a wholly renewable contract"),
)
EMBODIED = Input(
    name="embodied",
    group=InputGroup.MONEY,
    metavar=None,
    help="Also report carbon with GPU manufacturing included, as a second figure.",
    parse=parse_switch,
)

RECORDS = Input(
    name="records",
    group=InputGroup.EVIDENCE,
    metavar="PATH",
    help="Measurement record: a file, a folder of files, or a name.",
    default="your own records",
    parse=parse_text,
)
CALIBRATION = Input(
    name="calibration",
    group=InputGroup.EVIDENCE,
    metavar="FILE",
    help="Calibration that `mpplan calibrate` wrote from your own runs.",
    parse=parse_text,
)
NUMERICS = Input(
    name="numerics",
    group=InputGroup.EVIDENCE,
    metavar="FILE",
    help="Output of `mpplan numerics --json`; the report shows its parity results.",
    parse=parse_text,
)
SEED = Input(
    name="seed",
    group=InputGroup.EVIDENCE,
    metavar="N",
    help="Seed of the random draws behind the ranges.",
    default="0",
    parse=whole_number(low=0),
)
