import { useContext, type ReactNode } from 'react'
import { Menu as Base } from '@base-ui/react/menu'
import { HeldRole, refusalOf, type Operation } from './rights'
import css from './Menu.module.css'

export interface MenuItem {
  text: string
  onSelect: () => void
  danger?: boolean
  disabled?: boolean
  needs?: Operation
}

/** A button that opens a list of actions. */
export function Menu({ label, trigger, items }: { label: string; trigger?: ReactNode; items: MenuItem[] }) {
  const held = useContext(HeldRole)

  return (
    <Base.Root>
      <Base.Trigger className={css.trigger} aria-label={label} onClick={(e) => e.stopPropagation()}>
        {trigger ?? '⋯'}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className={css.positioner}>
          <Base.Popup className={css.popup}>
            {items.map((item) => {
              const refusal = refusalOf(item.needs, held)
              return (
                <Base.Item key={item.text} className={`${css.item} ${item.danger ? css.danger : ''}`}
                  disabled={(item.disabled ?? false) || refusal !== undefined} onClick={(e) => {
                    e.stopPropagation()
                    item.onSelect()
                  }}>
                  {item.text}
                  {refusal !== undefined && <p className={css.refusal}>{refusal}</p>}
                </Base.Item>
              )
            })}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
