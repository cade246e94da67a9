import { type Value } from '../message'

export const texts = {
  // failure
  theServerDoesNotAnswer: 'The server does not answer.',
  status: (status: Value) => `Status ${status}`,
}
