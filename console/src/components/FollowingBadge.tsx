import { texts } from '#texts/components'
import { Badge } from './Bits'
import type { Following } from './useChanges'

/** Says whether changes arrive. */
export function FollowingBadge({ state }: { state: Following }) {
  switch (state.status) {
    case 'off':
      return <Badge>{texts.notFollowing}</Badge>
    case 'connecting':
      return <Badge>{texts.connecting}</Badge>
    case 'following':
      return <Badge tone="success">{texts.following}</Badge>
    case 'lost':
      return <span><Badge tone="danger">{texts.interrupted}</Badge> {state.why}</span>
  }
}
