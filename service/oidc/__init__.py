"""OpenID Connect: an identity provider says who somebody is."""
