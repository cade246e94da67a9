import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { texts } from '#texts/access'
import { api, read, type Schemas } from '../../api/client'
import { roleName } from '../../components/Roles'
import { FailureNote } from '../../components/States'

type Preview = Schemas['InvitationPreview']

/** Reads what the holder of an invitation's link may see. */
export function useInvitation(token: string | undefined): UseQueryResult<Preview> {
  return useQuery({
    queryKey: ['invitation', token],
    enabled: token !== undefined,
    queryFn: async () => {
      const { content } = await read(api.GET('/invitations/preview', { params: { query: { token: token ?? '' } } }))
      return content
    },
  })
}

/** Says who invites the person to what. */
export function InvitationNote({ invitation, query }: { invitation: string | undefined; query: UseQueryResult<Preview> }) {
  if (invitation === undefined || query.isPending) return null
  if (query.error) return <FailureNote error={query.error} />
  if (query.data === undefined) return null

  const { inviter, organizationName, roleId } = query.data
  return (
    <p>
      {texts.inviterToOrganizationNameAsRoleId(inviter === '' ? texts.youAreInvited : texts.inviterInvitesYou(inviter), <b>{organizationName}</b>, roleName(roleId))}
    </p>
  )
}
