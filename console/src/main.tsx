import './insecure'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { texts } from '#texts/shell'
import { queries } from './queries'
import { router } from './routes'
import { Toasts } from './components/Toast'
import { applyTheme } from './shell/theme'
import './tokens.css'

applyTheme()

const root = document.getElementById('root')
if (root === null) throw new Error(texts.indexHtmlHasNoRoot)

createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
      <Toasts />
    </QueryClientProvider>
  </StrictMode>,
)
