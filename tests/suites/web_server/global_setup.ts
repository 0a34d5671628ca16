export default async function () {
  process.env.GREETING = 'Good morning';
}
