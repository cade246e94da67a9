import { texts } from '#texts/keys'
import type { Schemas } from '../../api/client'

export type PublicKey = Schemas['CreateJWTKeyBody']

/** Reads the text of a JSON Web Key, or of a set with one key. It throws an Error for people. */
export function parseJWK(text: string): PublicKey {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(texts.thisIsNotJSONPaste)
  }

  if (isObject(value) && Array.isArray(value.keys)) {
    if (value.keys.length !== 1) throw new Error(texts.theSetHasKeysPaste(value.keys.length))
    value = value.keys[0]
  }
  if (!isObject(value) || (value.kty !== 'EC' && value.kty !== 'RSA')) {
    throw new Error(texts.theKeyMustHaveKty)
  }
  if (value.d !== undefined) throw new Error(texts.thisIsAPrivateKey)

  return value as unknown as PublicKey
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
