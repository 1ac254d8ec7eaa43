"""Money, facts with evidence, and where the user's own files lie: what every other folder of pricing rests on."""
