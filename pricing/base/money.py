"""Amounts of money: ISO 4217 currencies, and prices without meaningless digits."""

from __future__ import annotations

from decimal import Decimal

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


def read_currency(row: Row, key: str = "currency") -> str:
    """Return the currency in a cell.

    Raises:
        InputFileError: it is not an active code of ISO 4217.
    """
    if row.cell(key) not in CURRENCIES:
        raise row.fail(key, "an ISO 4217 code such as USD")
    return row.cell(key)


def plain(amount: Decimal) -> Decimal:
    """Round an amount to a hundredth of a cent, without trailing zeros and without an exponent."""
    return Decimal(f"{amount.quantize(Decimal('0.0001')).normalize():f}")
