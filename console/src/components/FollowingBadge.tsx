import { Badge } from './Bits'
import type { Following } from './useChanges'

/** Says whether changes arrive. */
export function FollowingBadge({ state }: { state: Following }) {
  switch (state.status) {
    case 'off':
      return <Badge>not following</Badge>
    case 'connecting':
      return <Badge>connecting</Badge>
    case 'following':
      return <Badge tone="success">following</Badge>
    case 'lost':
      return <span><Badge tone="danger">interrupted</Badge> {state.why}</span>
  }
}
