// Playwright: npx playwright test. The service runs with POWGATE_TEST_KEYS=on, and the site under test with the keys below.
import { expect, test } from '@playwright/test'

const PAGE = process.env.PAGE_URL // with site_TestAlwaysPasses000000; its backend has the API key sk_TestPass_...

test('a visitor sends the form', async ({ page }) => {
  await page.goto(PAGE)
  await page.getByLabel('Name').fill('Ada')
  // Nothing to wait for: a Send that comes too early is repeated when the token is there.
  await page.getByRole('button', { name: 'Send' }).click()
  await expect(page.getByText('thank you')).toBeVisible()
})

test('a visitor who does not pass is told so, and the form is not sent', async ({ page }) => {
  await page.goto(PAGE)
  await page.locator('pow-gate').evaluate(gate => {
    gate.setAttribute('site-key', 'site_TestAlwaysFails0000000')
  })
  await page.getByLabel('Name').fill('Ada') // lest the form stay for want of a name
  await page.getByRole('button', { name: 'Send' }).click()
  await expect(page.getByRole('status')).toContainText('Verification failed')
  await expect(page).toHaveURL(PAGE)
})
