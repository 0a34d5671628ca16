// Takes memory, more than any test allows.
const held = [];
const more = () => { held.push(Buffer.alloc(10_000_000, 1)); if (held.length < 300) setTimeout(more, 5); };
more();
