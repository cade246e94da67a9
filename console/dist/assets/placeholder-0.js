document.getElementById('root').textContent = 'This binary has no console: run make console.'
