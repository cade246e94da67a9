import { texts } from '#texts/components'
import css from './MailFrame.module.css'

/**
 * A mail as its recipient sees it, but without its styles and pictures of other hosts. The empty
 * sandbox leaves it no scripts, no forms, and an origin of its own. Its text is in the address,
 * since the console's policy lets no text become markup (srcdoc).
 */
export function MailFrame({ html }: { html: string }) {
  return (
    <iframe className={css.frame} title={texts.theMailAsItsRecipient} sandbox=""
      src={`data:text/html;charset=utf-8,${encodeURIComponent(html)}`} />
  )
}
