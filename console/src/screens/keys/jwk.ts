import type { Schemas } from '../../api/client'

export type PublicKey = Schemas['CreateJWTKeyBody']

/** Reads the text of a JSON Web Key, or of a set with one key. It throws an Error for people. */
export function parseJWK(text: string): PublicKey {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('This is not JSON. Paste the public key as a JSON Web Key.')
  }

  if (isObject(value) && Array.isArray(value.keys)) {
    if (value.keys.length !== 1) throw new Error(`The set has ${value.keys.length} keys. Paste one of them.`)
    value = value.keys[0]
  }
  if (!isObject(value) || (value.kty !== 'EC' && value.kty !== 'RSA')) {
    throw new Error('The key must have "kty": "EC" or "RSA".')
  }
  if (value.d !== undefined) throw new Error('This is a private key. Paste the public one: remove the member "d".')

  return value as unknown as PublicKey
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
