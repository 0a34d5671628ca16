'use strict';
// Shows the OpenAPI document. Every feature that would ask another host is off.

Scalar.createApiReference('#viewer', {
  url: new URL('openapi.json', document.baseURI).href,
  servers: [{ url: new URL('.', document.baseURI).href.replace(/\/$/, '') }],
  authentication: { preferredSecurityScheme: 'apiKey' },
  agent: { disabled: true },
  mcp: { disabled: true },
  telemetry: false,
  withDefaultFonts: false,
  proxyUrl: '',
  persistAuth: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'direct',
  orderSchemaPropertiesBy: 'preserve',
});
