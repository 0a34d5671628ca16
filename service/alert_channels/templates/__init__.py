"""Templates of webhooks: a subset of Handlebars."""
