"""The search for changes that flip a label or move a number: attacks, witnesses and explanations."""
