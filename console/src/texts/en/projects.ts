export const texts = {
  // Projects
  projects: 'Projects',
  deleted: 'Deleted',
  eachProjectIsAPostgreSQL: 'Each project is a PostgreSQL database with its own users, files and keys.',
  newProject: 'New project',
  searchByName: 'Search by name',
}
