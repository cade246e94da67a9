import type { Spec } from '../../components/specs'

/** The settings of end users by subject, with the API's own explanations. */
export const subjects = [
  { id: 'sign-in', text: 'Sign-up and sign-in' },
  { id: 'addresses', text: 'Addresses' },
  { id: 'sessions', text: 'Sessions' },
  { id: 'providers', text: 'Providers' },
  { id: 'mail', text: 'Mail' },
  { id: 'phone', text: 'Phone' },
  { id: 'passkeys', text: 'Passkeys' },
  { id: 'limits', text: 'Limits' },
  { id: 'hooks', text: 'Hooks' },
  { id: 'oauth', text: 'OAuth server' },
] as const

export const signInSpecs: Spec[] = [
  { name: 'sign_up', label: 'Allow sign-up', kind: 'check', hint: 'People may create their own accounts.' },
  { name: 'anonymous_sign_in', label: 'Allow anonymous sign-in', kind: 'check',
    hint: 'People may sign in without credentials.' },
  { name: 'confirm_email', label: 'Confirm addresses', kind: 'check',
    hint: 'A new address must be confirmed by a mail before the first log-in.' },
  { name: 'password_min_length', label: 'Minimum length of passwords', kind: 'number' },
  { name: 'password_required_characters', label: 'Required characters of passwords', kind: 'list',
    hint: 'One a line: lower, upper, letter, digit, symbol. A new password has a character of each.' },
  { name: 'leaked_password_check', label: 'Refuse leaked passwords', kind: 'check',
    hint: 'New passwords must not be known from leaks.' },
]

export const addressSpecs: Spec[] = [
  { name: 'site_url', label: 'Site URL', kind: 'text',
    hint: 'Address of the application, where links in mails lead unless the request names another one.' },
  { name: 'redirect_urls', label: 'Redirect URLs', kind: 'list',
    hint: 'Other addresses where links may lead, one a line. * stands for characters except . and /, ** for any.' },
]

export const sessionSpecs: Spec[] = [
  { name: 'access_token_seconds', label: 'Lifetime of access tokens (seconds)', kind: 'number' },
  { name: 'session_seconds', label: 'End a session after (seconds)', kind: 'number', hint: '0: never.' },
  { name: 'session_inactivity_seconds', label: 'End a session without refresh after (seconds)', kind: 'number',
    hint: '0: never.' },
  { name: 'code_seconds', label: 'Lifetime of links and codes (seconds)', kind: 'number',
    hint: 'Of those in mails and text messages.' },
]

export const smtpSpecs: Spec[] = [
  { name: 'url', label: 'Server', kind: 'text',
    hint: 'smtp:// or smtps:// URL, with the user if the server wants one. Empty: the mail server of the install.' },
  { name: 'secrets.smtp', label: 'Password', kind: 'secret' },
  { name: 'from', label: 'Sender', kind: 'text', hint: 'Address, with or without a name.' },
]

export const mailLimitSpecs: Spec[] = [
  { name: 'mail_interval_seconds', label: 'Seconds between two mails to one address', kind: 'number' },
  { name: 'mails_per_hour', label: 'Mails in an hour', kind: 'number', hint: 'One network asks for at most half of them.' },
]

export const smsSpecs: Spec[] = [
  { name: 'sign_in', label: 'Sign in by phone', kind: 'check', hint: 'People may sign up and sign in with a phone number.' },
  { name: 'factors', label: 'Phones as second factors', kind: 'check' },
  { name: 'auto_confirm', label: 'Accept numbers unconfirmed', kind: 'check',
    hint: 'A number needs no code before the first log-in.' },
  { name: 'sender', label: 'Sender', kind: 'choice', choices: [
    { value: 'mailbox', text: "Mailbox: the project's mails, for development" },
    { value: 'hook', text: 'Hook: your own URL' },
    { value: 'twilio', text: 'Twilio, or a service with its interface' },
  ] },
  { name: 'text', label: 'Text', kind: 'text', hint: 'With the variables {{ .Token }} and {{ .SiteURL }}.' },
  { name: 'hook_url', label: 'Hook URL', kind: 'text',
    hint: 'An https URL, or functions://name for an edge function. It receives the user and the code, signed by the secret.' },
  { name: 'secrets.sms.hook', label: 'Hook secret', kind: 'secret' },
  { name: 'twilio_account_sid', label: 'Twilio account SID', kind: 'text' },
  { name: 'secrets.sms.twilio', label: 'Twilio token', kind: 'secret' },
  { name: 'twilio_from', label: 'Twilio sender', kind: 'text', hint: 'Number or name.' },
  { name: 'twilio_messaging_service_sid', label: 'Twilio messaging service SID', kind: 'text',
    hint: 'Instead of the sender.' },
  { name: 'twilio_url', label: 'Root of the interface', kind: 'text', hint: 'Empty: that of Twilio.' },
  { name: 'calling_codes', label: 'Calling codes', kind: 'list',
    hint: 'Beginnings of the numbers that messages may go to, such as 49, one a line. None: all.' },
  { name: 'interval_seconds', label: 'Seconds between two messages to one number', kind: 'number' },
  { name: 'per_hour', label: 'Messages in an hour', kind: 'number' },
  { name: 'per_network_and_hour', label: 'Messages of one network in an hour', kind: 'number' },
  { name: 'test_numbers', label: 'Test numbers', kind: 'list',
    hint: 'One a line, such as 491701234567=123456. They get no message, and anyone who knows one signs in.' },
]

export const webauthnSpecs: Spec[] = [
  { name: 'passkeys', label: 'Passkeys', kind: 'check', hint: 'Users may register passkeys and sign in with them.' },
  { name: 'factors', label: 'Authenticators as second factors', kind: 'check' },
  { name: 'rp_id', label: 'Domain', kind: 'text',
    hint: 'Domain that credentials are for, with its subdomains. Empty: the host of the site. A change makes former credentials useless.' },
  { name: 'rp_name', label: 'Name', kind: 'text', hint: 'Name that authenticators show. Empty: the domain.' },
  { name: 'origins', label: 'Origins', kind: 'list',
    hint: "Origins of the application's pages and apps, such as https://app.example.com, one a line. None: the origin of the site." },
]

export const limitSpecs: Spec[] = [
  { name: 'sign_ins_per_five_minutes', label: 'Sign-ups and log-ins of one network in five minutes', kind: 'number' },
  { name: 'checks_per_five_minutes', label: 'Links and codes checked from one network in five minutes', kind: 'number' },
  { name: 'anonymous_per_hour', label: 'Anonymous sign-ins of one network in an hour', kind: 'number' },
]

export const captchaSpecs: Spec[] = [
  { name: 'enabled', label: 'Check that a person signs up or in', kind: 'check' },
  { name: 'provider', label: 'Provider', kind: 'choice', choices: [
    { value: '', text: 'Choose one' }, { value: 'turnstile', text: 'Turnstile' }, { value: 'hcaptcha', text: 'hCaptcha' },
  ] },
  { name: 'secrets.captcha', label: 'Secret', kind: 'secret' },
  { name: 'url', label: 'Address of verification', kind: 'text', hint: "Empty: the provider's own." },
]

export const oauthSpecs: Spec[] = [
  { name: 'enabled', label: 'Run an OAuth 2.1 server', kind: 'check',
    hint: "Other applications ask the project's users for access." },
  { name: 'allow_dynamic_registration', label: 'Anyone may register a client', kind: 'check' },
  { name: 'authorization_path', label: 'Consent page', kind: 'text',
    hint: "Path of the application's page below the site URL. Empty: a page of this server." },
]

export const hookNames = [
  'custom_access_token', 'before_user_created', 'after_user_created', 'password_verification_attempt',
  'mfa_verification_attempt', 'send_email',
] as const

export const hookSpecs: Spec[] = hookNames.flatMap((name): Spec[] => [
  { name, label: name, kind: 'text',
    hint: 'pg-functions://postgres/schema/function in SQL, functions://name for an edge function, or an https URL. Empty: none.' },
  { name: `secrets.hooks.${name}`, label: `Secret of ${name}`, kind: 'secret' },
])

export const providerNames = [
  'google', 'apple', 'azure', 'github', 'gitlab', 'discord', 'facebook', 'linkedin_oidc', 'slack_oidc', 'keycloak',
] as const

export const mailKinds = ['confirmation', 'invite', 'magic_link', 'recovery', 'email_change', 'reauthentication'] as const
