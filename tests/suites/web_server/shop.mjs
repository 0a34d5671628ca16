import { createServer } from 'node:http';

createServer((_, answer) => {
  answer.setHeader('content-type', 'text/html');
  answer.end('<title>Lamps</title><h1>Lamps</h1>');
}).listen(Number(process.env.SHOP_PORT), '127.0.0.1');
