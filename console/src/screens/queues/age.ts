const units: [name: string, seconds: number][] = [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1]]

/** Returns seconds as "3 h". */
export function ageOf(seconds: number | null): string {
  if (seconds === null) return ''
  const [name, size] = units.find(([, s]) => seconds >= s) ?? ['s', 1]

  return `${Math.floor(seconds / size)} ${name}`
}
