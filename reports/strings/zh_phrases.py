PHRASES: dict[str, str] = {}
