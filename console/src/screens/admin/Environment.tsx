import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Badge } from '../../components/Bits'
import { CheckField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { useURLState } from '../../url'
import css from './Admin.module.css'

/** How the server was started. */
export function Environment() {
  const [shown, setShown] = useURLState('shown', 'all')
  const query = useQuery({ queryKey: ['environment'], queryFn: () => read(api.GET('/admin/environment')) })

  return (
    <Card title="Environment" lead="Set where the server is started. Secrets are hidden.">
      <CheckField label="Only what differs from the default" checked={shown === 'changed'}
        onChange={(e) => setShown(e.target.checked ? 'changed' : 'all')} />
      <Loaded query={query} rows={10}>
        {({ content }) => (
          <Table label="Environment" keyOf={(v) => v.name}
            rows={content.filter((v) => shown === 'all' || v.value !== v.default)} columns={[
              { title: 'Variable', cell: (v) => (
                <div className={css.meaning}><code>{v.name}</code><p>{v.meaning}</p></div>
              ) },
              { title: 'Value', cell: (v) => (
                <div className={css.value}>
                  {v.value === '' ? '' : <code>{v.value}</code>} {v.value !== v.default && <Badge tone="warning">set</Badge>}
                </div>
              ) },
              { title: 'Default', cell: (v) => <div className={css.value}>{v.default !== '' && <code>{v.default}</code>}</div>,
                narrow: true },
            ]} />
        )}
      </Loaded>
    </Card>
  )
}
