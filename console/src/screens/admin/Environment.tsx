import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/admin'
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
    <Card title={texts.environment} lead={texts.setWhereTheServerIs}>
      <CheckField label={texts.onlyWhatDiffersFromThe} checked={shown === 'changed'}
        onChange={(e) => setShown(e.target.checked ? 'changed' : 'all')} />
      <Loaded query={query} rows={10}>
        {({ content }) => (
          <Table label={texts.environment} keyOf={(v) => v.name}
            rows={content.filter((v) => shown === 'all' || v.value !== v.default)} columns={[
              { title: texts.variable, cell: (v) => (
                <div className={css.meaning}><code>{v.name}</code><p>{v.meaning}</p></div>
              ) },
              { title: texts.value, cell: (v) => (
                <div className={css.value}>
                  {v.value === '' ? '' : <code>{v.value}</code>} {v.value !== v.default && <Badge tone="warning">{texts.set}</Badge>}
                </div>
              ) },
              { title: texts.default, cell: (v) => <div className={css.value}>{v.default !== '' && <code>{v.default}</code>}</div>,
                narrow: true },
            ]} />
        )}
      </Loaded>
    </Card>
  )
}
