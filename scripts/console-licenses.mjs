// Prints the licenses of the packages that the web console may contain, in the form of LICENSES.md.
// Its working directory is console, with installed packages.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
console.log('# Licenses of the packages in the web console\n\nWritten by `make console`.')

for (const folder of Object.keys(packages).sort()) {
  const { dev, devOptional, version } = packages[folder]
  if (folder === '' || dev || devOptional || !existsSync(folder)) continue

  const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)(\.|-|$)/i.test(file))
  if (files.length === 0) throw new Error(`${name} has no license file`)

  for (const file of files.sort()) {
    console.log(`\n## ${name} ${version}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}`)
  }
}
