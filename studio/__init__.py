"""The web studio: authoring, conversations and their audit, around the engine."""
