// Says more than anyone wants to read, without and with line ends.
const { writeSync } = require("fs");
writeSync(3, '"began"\n');
for (let i = 0; i < 200; i++) writeSync(1, "x".repeat(100000));
for (let i = 0; i < 200; i++) writeSync(2, "\n".repeat(100000));
writeSync(3, '"done"\n');
