// Takes memory without end.
const held = [];
const more = () => { held.push(Buffer.alloc(10_000_000, 1)); setTimeout(more, 5); };
more();
