"""From the sketches of a page to its near-duplicate pairs and leaders."""
