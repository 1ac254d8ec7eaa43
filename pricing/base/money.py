"""Amounts of money: ISO 4217 currencies, and rounding that keeps a total equal to the sum of its lines."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

from planner.costs.rounding import apportioned
from planner.rows import Row

_ISO_4217 = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
    CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD
    HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD
    MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN
    PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD
    TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_ISO_4217.split())
"""Active currency codes of ISO 4217."""

_MINOR_DIGITS = {
    code: digits
    for digits, codes in (
        (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"),
        (3, "BHD IQD JOD KWD LYD OMR TND"),
    )
    for code in codes.split()
}


def read_currency(row: Row, key: str = "currency") -> str:
    """The currency in a cell.

    Raises:
        InputFileError: it is not an active code of ISO 4217.
    """
    if row.cell(key) not in CURRENCIES:
        raise row.fail(key, "an ISO 4217 code such as USD")
    return row.cell(key)


def plain(amount: Decimal) -> Decimal:
    """An amount rounded to a hundredth of a cent, without trailing zeros and without an exponent."""
    return Decimal(f"{amount.quantize(Decimal('0.0001')).normalize():f}")


def smallest_unit(currency: str) -> Decimal:
    """The smallest unit of a currency (ISO 4217): 0.01 for USD, 1 for JPY, 0.001 for KWD."""
    return Decimal(1).scaleb(-_MINOR_DIGITS.get(currency, 2))


def rounded(amount: Decimal, currency: str) -> Decimal:
    """The amount in whole smallest units, half to even."""
    return amount.quantize(smallest_unit(currency), rounding=ROUND_HALF_EVEN)


def rounded_lines(amounts: Sequence[Decimal], currency: str, total: Decimal | None = None) -> tuple[Decimal, ...]:
    """Round the lines of a bill so that they sum exactly to the rounded total (largest remainder method).

    Args:
        amounts: exact amounts; each changes by less than one smallest unit.
        currency: ISO 4217 code, which decides the smallest unit.
        total: a rounded total that the lines sum to instead of their rounded sum; the difference is spread over them.
    """
    unit = smallest_unit(currency)
    target = rounded(sum(amounts, Decimal(0)), currency) if total is None else total
    return apportioned(amounts, unit, target)
