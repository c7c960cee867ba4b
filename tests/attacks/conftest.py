from ledger.places import postgres  # noqa: F401
