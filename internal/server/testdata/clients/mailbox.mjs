// A mail server of others' making. It writes a line of JSON for itself, once it listens, and one for each mail that it has taken; it ends with its standard input.
import fs from 'node:fs'
import { SMTPServer } from 'smtp-server'

const { MAIL_TLS: implicit, MAIL_KEY: key, MAIL_CERTIFICATE: certificate, MAIL_USER: user, MAIL_PASSWORD: password } = process.env
const say = (value) => fs.writeSync(1, JSON.stringify(value) + '\n')

const server = new SMTPServer({
	secure: implicit === 'yes',
	disableReverseLookup: true,
	key,
	cert: certificate,
	authMethods: ['PLAIN', 'LOGIN', 'CRAM-MD5'],
	onAuth({ method, username, password: given, validatePassword }, session, done) {
		const right = username === user && (given === password || validatePassword?.(password))
		done(right ? null : new Error('wrong'), { user: `${method} ${username}` })
	},
	onRcptTo({ address }, session, done) {
		const refused = address.startsWith('nobody@') && Object.assign(new Error('no such mailbox'), { responseCode: 550 })
		done(refused || null)
	},
	onData(stream, session, done) {
		const parts = []
		stream.on('data', (part) => parts.push(part))
		stream.on('end', () => {
			const { mailFrom, rcptTo } = session.envelope
			say({ secure: session.secure, user: session.user, from: mailFrom.address, to: rcptTo.map(({ address }) => address), data: Buffer.concat(parts).toString() })
			done()
		})
	},
})
server.on('error', () => {}) // a client that breaks off is the test's own
server.listen(0, '127.0.0.1', () => say({ port: server.server.address().port }))
process.stdin.on('close', () => process.exit()).resume()
