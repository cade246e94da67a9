import { texts } from '#texts/account'

const browsers: [RegExp, string][] = [
  [/\bEdgA?\/(\d+)/, 'Edge'], [/\bOPR\/(\d+)/, 'Opera'], [/\bFirefox\/(\d+)/, 'Firefox'],
  [/\b(?:Headless)?Chrome\/(\d+)/, 'Chrome'], [/\bVersion\/(\d+).*Safari/, 'Safari'],
]
const systems: [RegExp, string][] = [
  [/iPhone|iPad/, 'iOS'], [/Android/, 'Android'], [/Windows/, 'Windows'], [/Mac OS X/, 'macOS'], [/Linux/, 'Linux'],
]

/** Returns "Firefox 140 on Linux" for a User-Agent; of a program that is no browser its own name. */
export function browserName(agent: string): string {
  if (agent === '') return texts.unknownProgram

  const system = systems.find(([pattern]) => pattern.test(agent))?.[1]
  for (const [pattern, name] of browsers) {
    const m = pattern.exec(agent)
    if (m) return `${name} ${m[1]}${system === undefined ? '' : ` on ${system}`}`
  }

  return agent.length > 60 ? `${agent.slice(0, 60)}…` : agent
}
