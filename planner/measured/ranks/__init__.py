"""From what was measured of several ranks to steps that span them."""
