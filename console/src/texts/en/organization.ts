import { type Node, type Value, say } from '../message'

export const texts = {
  // Invitations
  invitePerson: 'Invite person',
  aNewLinkIsOn: (email: Value) => `A new link is on its way to ${email}. Earlier links no longer work.`,
  invitations: 'Invitations',
  eachMailsALinkThat: 'Each mails a link that works once, for seven days.',
  noOpenInvitation: 'No open invitation',
  inviteAColleagueByE: 'Invite a colleague by e-mail address.',
  eMailAddress: 'E-mail address',
  role: 'Role',
  sent: 'Sent',
  expires: 'Expires',
  expired: 'expired',
  resendInvitationToEmail: (email: Value) => `Resend invitation to ${email}`,
  resend: 'Resend',
  revokeInvitationToEmail: (email: Value) => `Revoke invitation to ${email}`,
  revoke: 'Revoke',
  revokeInvitation: 'Revoke invitation',
  theLinkThatHasNo: (email: Node) => say`The link that ${email} has no longer works. You can invite them again.`,
  sendInvitation: 'Send invitation',
  theInvitationIsOnIts: (email: Value) => `The invitation is on its way to ${email}.`,

  // Members
  changeRole: 'Change role',
  makeOwnerInsteadOfYou: 'Make owner instead of you',
  removeMember: 'Remove member',
  members: 'Members',
  invitePeople: 'Invite people',
  userName: 'User name',
  you: 'you',
  memberSince: 'Member since',
  actionsForUsername: (username: Value) => `Actions for ${username}`,
  roleOfUsername: (username: Value) => `Role of ${username}`,
  countsFromTheMembersNext: "Counts from the member's next request.",
  transferOrganization: 'Transfer organization',
  becomesAnOwnerOfAnd: (username: Node, name: Value) =>
    say`${username} becomes an owner of ${name} and you become an admin. You can then no longer transfer or delete it, or delete its projects.`,
  noLongerReachesTheProjects: (username: Node, email: Value, name: Value) =>
    say`${username} (${email}) no longer reaches the projects of ${name}. Invitations that they sent and nobody accepted are deleted. What they created stays.`,

  // OrganizationList
  yourOrganizations: 'Your organizations',
  eachHasItsOwnMembers: 'Each has its own members and projects.',
  createOrganization: 'Create organization',
  organizations: 'Organizations',
  name: 'Name',
  thisOne: 'this one',
  yourRole: 'Your role',
  created: 'Created',
  newOrganization: 'New organization',

  // OrganizationProjects
  projects: 'Projects',
  allMembersReachThemEach: 'All members reach them, each with their role.',
  newProject: 'New project',
  deletedProjects: 'Deleted projects',
  ownersCanRestoreThemUntil: 'Owners can restore them until they are purged.',

  // OrganizationSettings
  organization: 'Organization',
  uuid: 'UUID',
  theOrganizationsUUID: "the organization's UUID",
  leaveOrganization: 'Leave organization',
  youNoLongerReachIts: 'You no longer reach its projects. The last owner cannot leave.',
  deleteOrganization: 'Delete organization',
  onlyWithoutProjectsAndIf: "Only without projects, and if it is no member's personal organization.",
  youNoLongerReachThe: (name: Node) =>
    say`You no longer reach the projects of ${name}, until somebody invites you again. What you created stays.`,
  itsMembershipsAndItsInvitations: (name: Node) =>
    say`${name}, its memberships and its invitations are gone. This cannot be undone.`,

  // Organization
  settings: 'Settings',
  allOrganizations: 'All organizations',
  peopleWhoShareProjects: 'People who share projects.',
  youAreRoleId: (roleId: Value) => `You are ${roleId}`,
}
