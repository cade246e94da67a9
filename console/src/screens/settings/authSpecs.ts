import { texts } from '#texts/settings'
import type { Spec } from '../../components/specs'

/** The settings of end users by subject, with the API's own explanations. */
export const subjects = [
  { id: 'sign-in', text: texts.signUpAndSignIn },
  { id: 'addresses', text: texts.addresses },
  { id: 'sessions', text: texts.sessions },
  { id: 'providers', text: texts.providers },
  { id: 'mail', text: texts.mail },
  { id: 'phone', text: texts.phone },
  { id: 'passkeys', text: texts.passkeys },
  { id: 'limits', text: texts.limits },
  { id: 'hooks', text: texts.hooks },
  { id: 'oauth', text: texts.oAuthServer },
] as const

export const signInSpecs: Spec[] = [
  { name: 'sign_up', label: texts.allowSignUp, kind: 'check', hint: texts.peopleMayCreateTheirOwn },
  { name: 'anonymous_sign_in', label: texts.allowAnonymousSignIn, kind: 'check',
    hint: texts.peopleMaySignInWithout },
  { name: 'confirm_email', label: texts.confirmAddresses, kind: 'check',
    hint: texts.aNewAddressMustBe },
  { name: 'password_min_length', label: texts.minimumLengthOfPasswords, kind: 'number' },
  { name: 'password_required_characters', label: texts.requiredCharactersOfPasswords, kind: 'list',
    hint: texts.oneALineLowerUpper },
  { name: 'leaked_password_check', label: texts.refuseLeakedPasswords, kind: 'check',
    hint: texts.newPasswordsMustNotBe },
]

export const addressSpecs: Spec[] = [
  { name: 'site_url', label: texts.siteURL, kind: 'text',
    hint: texts.addressOfTheApplicationWhere },
  { name: 'redirect_urls', label: texts.redirectURLs, kind: 'list',
    hint: texts.otherAddressesWhereLinksMay },
]

export const sessionSpecs: Spec[] = [
  { name: 'access_token_seconds', label: texts.lifetimeOfAccessTokensSeconds, kind: 'number' },
  { name: 'session_seconds', label: texts.endASessionAfterSeconds, kind: 'number', hint: texts.zeroNever },
  { name: 'session_inactivity_seconds', label: texts.endASessionWithoutRefresh, kind: 'number',
    hint: texts.zeroNever },
  { name: 'code_seconds', label: texts.lifetimeOfLinksAndCodes, kind: 'number',
    hint: texts.ofThoseInMailsAnd },
]

export const smtpSpecs: Spec[] = [
  { name: 'url', label: texts.server, kind: 'text',
    hint: texts.smtpOrSmtpsURLWith },
  { name: 'secrets.smtp', label: texts.password, kind: 'secret' },
  { name: 'from', label: texts.sender, kind: 'text', hint: texts.addressWithOrWithoutA },
]

export const mailLimitSpecs: Spec[] = [
  { name: 'mail_interval_seconds', label: texts.secondsBetweenTwoMailsTo, kind: 'number' },
  { name: 'mails_per_hour', label: texts.mailsInAnHour, kind: 'number', hint: texts.oneNetworkAsksForAt },
]

export const smsSpecs: Spec[] = [
  { name: 'sign_in', label: texts.signInByPhone, kind: 'check', hint: texts.peopleMaySignUpAnd },
  { name: 'factors', label: texts.phonesAsSecondFactors, kind: 'check' },
  { name: 'auto_confirm', label: texts.acceptNumbersUnconfirmed, kind: 'check',
    hint: texts.aNumberNeedsNoCode },
  { name: 'sender', label: texts.sender, kind: 'choice', choices: [
    { value: 'mailbox', text: texts.mailboxTheProjectsMailsFor },
    { value: 'hook', text: texts.hookYourOwnURL },
    { value: 'twilio', text: texts.twilioOrAServiceWith },
  ] },
  { name: 'text', label: texts.text, kind: 'text', hint: texts.withTheVariablesTokenAnd },
  { name: 'hook_url', label: texts.hookURL, kind: 'text', hint: texts.addressOfTheHook },
  { name: 'secrets.sms.hook', label: texts.hookSecret, kind: 'secret' },
  { name: 'twilio_account_sid', label: texts.twilioAccountSID, kind: 'text' },
  { name: 'secrets.sms.twilio', label: texts.twilioToken, kind: 'secret' },
  { name: 'twilio_from', label: texts.twilioSender, kind: 'text', hint: texts.numberOrName },
  { name: 'twilio_messaging_service_sid', label: texts.twilioMessagingServiceSID, kind: 'text',
    hint: texts.insteadOfTheSender },
  { name: 'twilio_url', label: texts.rootOfTheInterface, kind: 'text', hint: texts.emptyThatOfTwilio },
  { name: 'calling_codes', label: texts.callingCodes, kind: 'list',
    hint: texts.beginningsOfTheNumbersThat },
  { name: 'interval_seconds', label: texts.secondsBetweenTwoMessagesTo, kind: 'number' },
  { name: 'per_hour', label: texts.messagesInAnHour, kind: 'number' },
  { name: 'per_network_and_hour', label: texts.messagesOfOneNetworkIn, kind: 'number' },
  { name: 'test_numbers', label: texts.testNumbers, kind: 'list',
    hint: texts.oneALineSuchAs },
]

export const webauthnSpecs: Spec[] = [
  { name: 'passkeys', label: texts.passkeys, kind: 'check', hint: texts.usersMayRegisterPasskeysAnd },
  { name: 'factors', label: texts.authenticatorsAsSecondFactors, kind: 'check' },
  { name: 'rp_id', label: texts.domain, kind: 'text',
    hint: texts.domainThatCredentialsAreFor },
  { name: 'rp_name', label: texts.name, kind: 'text', hint: texts.nameThatAuthenticatorsShowEmpty },
  { name: 'origins', label: texts.origins, kind: 'list',
    hint: texts.originsOfTheApplicationsPages },
]

export const limitSpecs: Spec[] = [
  { name: 'sign_ins_per_five_minutes', label: texts.signUpsAndLogIns, kind: 'number' },
  { name: 'checks_per_five_minutes', label: texts.linksAndCodesCheckedFrom, kind: 'number' },
  { name: 'anonymous_per_hour', label: texts.anonymousSignInsOfOne, kind: 'number' },
]

export const captchaSpecs: Spec[] = [
  { name: 'enabled', label: texts.checkThatAPersonSigns, kind: 'check' },
  { name: 'provider', label: texts.provider, kind: 'choice', choices: [
    { value: '', text: texts.chooseOne }, { value: 'turnstile', text: texts.turnstile }, { value: 'hcaptcha', text: texts.hCaptcha },
  ] },
  { name: 'secrets.captcha', label: texts.secret, kind: 'secret' },
  { name: 'url', label: texts.addressOfVerification, kind: 'text', hint: texts.emptyTheProvidersOwn },
]

export const oauthSpecs: Spec[] = [
  { name: 'enabled', label: texts.runAnOAuthTwoOne, kind: 'check',
    hint: texts.otherApplicationsAskTheProjects },
  { name: 'allow_dynamic_registration', label: texts.anyoneMayRegisterAClient, kind: 'check' },
  { name: 'authorization_path', label: texts.consentPage, kind: 'text',
    hint: texts.pathOfTheApplicationsPage },
]

export const hookNames = [
  'custom_access_token', 'before_user_created', 'after_user_created', 'password_verification_attempt',
  'mfa_verification_attempt', 'send_email',
] as const

export const hookSpecs: Spec[] = hookNames.flatMap((name): Spec[] => [
  { name, label: name, kind: 'text', hint: texts.addressesOfHooks },
  { name: `secrets.hooks.${name}`, label: texts.secretOfName(name), kind: 'secret' },
])

export const providerNames = [
  'google', 'apple', 'azure', 'github', 'gitlab', 'discord', 'facebook', 'linkedin_oidc', 'slack_oidc', 'keycloak',
] as const

export const mailKinds = ['confirmation', 'invite', 'magic_link', 'recovery', 'email_change', 'reauthentication'] as const
