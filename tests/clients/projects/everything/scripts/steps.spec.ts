import { expect, test } from '@playwright/test'

test('books are listed', async ({ request }) => {
  const answer = await request.get(`${process.env.SHOP_URL}/api/books`)
  expect(answer.status()).toBe(200)
})
