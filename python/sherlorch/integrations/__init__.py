"""Where people already are: pytest, notebooks, logging. Each imports its host only when used."""
