import { expect, test } from 'vitest'
import { localTime, settingsPatch, type SettingsDraft } from './settings'

const draft: SettingsDraft = {
  name: 'A', description: '', state: 'draft', opensAt: '', closesAt: '', maxResponses: '', successMessage: '', redirectURL: '',
  container: '', notifyEmails: '', embedOrigins: 'https://a.b', honeypot: '', color: '', logo: '',
}

test('a patch has only what changed', () => {
  expect(settingsPatch(draft, draft)).toEqual({})
  expect(settingsPatch(draft, { ...draft, state: 'open', maxResponses: '5', embedOrigins: 'https://a.b\n\n https://c.d ' })).toEqual({
    state: 'open', max_responses: 5, embed_origins: ['https://a.b', 'https://c.d'],
  })
  expect(settingsPatch({ ...draft, color: '#112233' }, draft)).toEqual({ color: null })
})

test('local times are the same instant', () => {
  const at = '2026-03-01T10:30:00.000Z'

  expect(settingsPatch(draft, { ...draft, opensAt: localTime(at) })).toEqual({ opens_at: at })
  expect(localTime(null)).toBe('')
})
