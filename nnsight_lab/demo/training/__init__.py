"""How the embedded model was made: its facts, its tokenizer, its training (`train`) and what was measured on it."""
