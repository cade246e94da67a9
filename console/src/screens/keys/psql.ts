/** Returns the command that connects psql with a database credential. */
export function psqlCommand({ address, username, password, database }: {
  address: string
  username: string
  password: string
  database: string
}): string {
  const user = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`
  return `psql "postgres://${user}@${address}/${encodeURIComponent(database)}?sslmode=verify-full"`
}

/**
 * Returns the address that clients use for one that the server listens on: an address of all
 * interfaces has no host, so the host of this page stands for it.
 */
export function clientAddress(listen: string, pageHost: string): string {
  const colon = listen.lastIndexOf(':')
  const host = listen.slice(0, colon)
  const isAny = host === '' || host === '0.0.0.0' || host === '[::]'

  return isAny ? `${pageHost}:${listen.slice(colon + 1)}` : listen
}
