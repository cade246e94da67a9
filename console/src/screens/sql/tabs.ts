/** The texts that a person works on, kept in this browser for each project. */

import { useState } from 'react'

export interface Tab {
  id: string
  text: string
}

export interface Saved {
  name: string
  text: string
}

const tabsKey = (project: string) => `socle-sql-tabs-${project}`
const savedKey = (project: string) => `socle-sql-saved-${project}`
const newTab = (text = ''): Tab => ({ id: crypto.randomUUID().slice(0, 8), text })

function load<T>(key: string): T[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(value) ? (value as T[]) : []
  } catch {
    return []
  }
}

function store<T>(key: string, items: T[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(items))
  } catch {
    // The browser's storage is full or closed: the texts live as long as the page.
  }
}

export function useTabs(project: string) {
  const [tabs, setTabs] = useState<Tab[]>(() => {
    const kept = load<Tab>(tabsKey(project))
    return kept.length > 0 ? kept : [newTab()]
  })

  function keep(next: Tab[]) {
    setTabs(next)
    store(tabsKey(project), next)
  }

  return {
    tabs,
    write: (id: string, text: string) => keep(tabs.map((t) => (t.id === id ? { id, text } : t))),
    /** Adds a tab, in the place of an empty last one, and returns its ID. */
    add: (text = ''): string => {
      const tab = newTab(text)
      keep([...tabs.filter((t, i) => i < tabs.length - 1 || t.text.trim() !== ''), tab])
      return tab.id
    },
    close: (id: string) => {
      const rest = tabs.filter((t) => t.id !== id)
      keep(rest.length > 0 ? rest : [newTab()])
    },
  }
}

export function useSaved(project: string) {
  const [saved, setSaved] = useState(() => load<Saved>(savedKey(project)))

  function keep(next: Saved[]) {
    setSaved(next)
    store(savedKey(project), next)
  }

  return {
    saved,
    remove: (name: string) => keep(saved.filter((s) => s.name !== name)),
  }
}
