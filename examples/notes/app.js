import { publishableKey, url } from './config.js'

// All projects of a server share its host, so each application names its storage of sessions.
const client = supabase.createClient(url, publishableKey, { auth: { storageKey: 'session-of-notes' } })
const files = client.storage.from('avatars')

const element = id => document.getElementById(id)
let user = null
let email = '' // of the user who has to confirm their address

const picture = () => `${user.id}/picture`

// attempt shows the failure of a request, and returns its data otherwise.
async function attempt(request) {
  element('message').textContent = ''

  const { data, error } = await request
  if (error) {
    element('message').textContent = error.message
    throw error
  }
  return data
}

// onSubmit calls f with the fields of a form, and empties them after a success. Until then nothing can be typed into them.
function onSubmit(id, f) {
  const form = element(id)
  const disable = disabled => { for (const field of form.elements) field.disabled = disabled }

  form.addEventListener('submit', async event => {
    event.preventDefault()
    const fields = Object.fromEntries(new FormData(form, event.submitter))
    const focused = document.activeElement
    disable(true)
    try {
      await f(fields)
      form.reset()
    } finally {
      disable(false)
      focused.focus()
    }
  })
}

function show() {
  element('enter').hidden = Boolean(user || email)
  element('confirm').hidden = Boolean(user || !email)
  element('notes').hidden = !user
  element('address').textContent = user?.email ?? ''
}

// showNotes shows the notes. An answer is out of date if they were asked for again before it came.
let questions = 0
async function showNotes() {
  const question = ++questions
  const notes = await attempt(client.from('notes').select('id, body').order('created_at', { ascending: false }))
  if (question !== questions) return

  element('list').replaceChildren(...notes.map(note => {
    const item = document.createElement('li')
    const remove = document.createElement('button')
    remove.textContent = 'Delete'
    remove.addEventListener('click', async () => {
      await attempt(client.from('notes').delete().eq('id', note.id))
      await showNotes()
    })
    item.append(note.body, ' ', remove)
    return item
  }))
}

// showAvatar shows the user's picture. Its address has the time of the upload, since browsers keep pictures.
function showAvatar() {
  const { avatar } = user.user_metadata
  element('avatar').hidden = !avatar
  if (avatar) element('avatar').src = `${files.getPublicUrl(picture()).data.publicUrl}?${avatar}`
}

onSubmit('enter', async ({ email: address, password, action }) => {
  if (action === 'signIn') {
    await attempt(client.auth.signInWithPassword({ email: address, password }))
    return
  }

  const { session } = await attempt(client.auth.signUp({ email: address, password }))
  if (!session) {
    email = address
    element('message').textContent = 'We have sent you a mail.'
    show()
  }
})

onSubmit('confirm', async ({ token }) => {
  await attempt(client.auth.verifyOtp({ type: 'signup', email, token }))
})

onSubmit('add', async ({ body }) => {
  await attempt(client.from('notes').insert({ body }))
  await showNotes()
})

element('picture').addEventListener('change', async event => {
  const [file] = event.target.files
  await attempt(files.upload(picture(), file, { upsert: true }))
  const updated = await attempt(client.auth.updateUser({ data: { avatar: Date.now() } }))
  event.target.value = ''
  user = updated.user
  showAvatar()
})

element('leave').addEventListener('click', () => attempt(client.auth.signOut()))

// The client must not be called inside of this function: it waits for it.
client.auth.onAuthStateChange((_, session) => {
  const entered = session && session.user.id !== user?.id
  user = session?.user ?? null
  if (user) email = ''
  show()
  if (entered) setTimeout(() => { showAvatar(); showNotes() })
})
